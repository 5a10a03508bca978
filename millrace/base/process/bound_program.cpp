#include "millrace/base/process/bound_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

constexpr int kCannotExecute = 127;  // as shells say it

/// Becomes the program. Between fork and exec only calls that are safe in a signal handler.
[[noreturn]] void become(char* const* words, pid_t parent, int in, int out, int err) {
  // The parent may have gone before prctl.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(kCannotExecute);
  ::setpgid(0, 0);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execv(words[0], words);
  const char* const parts[] = {words[0], ": cannot be executed: ", ::strerrordesc_np(errno), "\n"};
  for (const char* part : parts)
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::_exit(kCannotExecute);
}

}  // namespace

BoundProgram::BoundProgram(const std::vector<std::string>& words, const ProgramOutput& output) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const UniqueFd in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t parent = ::getpid();
  id_ = ::fork();
  if (id_ == 0) become(arguments.data(), parent, in.get(), output.out.get(), output.err.get());
  if (id_ < 0) throw Error(words[0] + " cannot be started: " + std::strerror(errno));
}

BoundProgram::BoundProgram(BoundProgram&& other) noexcept
    : id_(other.id_), ended_(std::exchange(other.ended_, true)), status_(other.status_) {}

BoundProgram::~BoundProgram() {
  signal(SIGKILL);
  wait();
}

bool BoundProgram::has_ended() {
  if (!ended_) ended_ = ::waitpid(id_, &status_, WNOHANG) == id_;
  return ended_;
}

void BoundProgram::wait() {
  while (!ended_) ended_ = ::waitpid(id_, &status_, 0) == id_ || errno != EINTR;
}

void BoundProgram::signal(int number) {
  if (!has_ended()) ::kill(id_, number);
}

int BoundProgram::exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }

std::string BoundProgram::failure() const {
  if (WIFSIGNALED(status_)) {
    const int signal = WTERMSIG(status_);
    return "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  return exit_code() == 0 ? "" : "exit code " + std::to_string(exit_code());
}

}  // namespace millrace
