#include "millrace/cli/hand_over.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "millrace/base/log.h"
#include "millrace/cli/command.h"

namespace millrace::cli {

int hand_over(char** argv) {
  if (!std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT"))
    setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/1);
  std::error_code unknown;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path() / "trainer-torch";
  execv(beside.c_str(), argv);
  print_to_stderr(fmt::format(
      "trainer: error: cannot start {}: {}; it belongs beside trainer: build or install both\n",
      beside.string(), std::strerror(errno)));
  return kFailed;
}

}  // namespace millrace::cli
