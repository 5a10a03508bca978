#include "cli/passive_wait.h"

#include <unistd.h>

#include <cstdlib>

namespace millrace::cli {

void wait_passively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/1);
  execv("/proc/self/exe", argv);
  // Where that fails the program goes on as it is, only slower.
}

}  // namespace millrace::cli
