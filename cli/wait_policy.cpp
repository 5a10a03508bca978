#include "cli/wait_policy.h"

#include <unistd.h>

#include <cstdlib>

namespace millrace::cli {

void spin_briefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/1);
  execv("/proc/self/exe", argv);
  // Where that fails the program goes on as it is, only slower.
}

}  // namespace millrace::cli
