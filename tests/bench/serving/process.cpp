#include "tests/bench/serving/process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace::bench {

ServingProcess::ServingProcess(const std::function<void()>& serve) : id_(::fork()) {
  if (id_ < 0) throw Error("bench_serving: cannot start a process");
  if (id_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    serve();
  } catch (const std::exception& problem) {
    fmt::print(stderr, "bench_serving: a server: {}\n", problem.what());
  }
  ::_exit(1);
}

ServingProcess::ServingProcess(ServingProcess&& other) noexcept
    : id_(std::exchange(other.id_, 0)) {}

ServingProcess::~ServingProcess() {
  if (id_ <= 0) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

}  // namespace millrace::bench
