// gpu_tests compares computations on a GPU with the CPU. `trainer check-gpu` and ctest (label gpu)
// start it. Some tests run the program `trainer` in the same folder.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/exit_codes.h"
#include "tests/gpu/on_device.h"

namespace millrace::testing {
namespace {

/// Skips each test if there is no GPU. A device other than "cuda" must exist.
int run_all(const Cluster& cluster) {
  auto& device = tested();
  device.cluster = &cluster;
  try {
    if (!GTEST_FLAG_GET(list_tests)) device.open(cluster.local_rank());
  } catch (const ConfigError& problem) {
    device.missing = problem.what();
    if (!device.on_cuda()) throw;
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace millrace::testing

int main(int argc, char** argv) {
  using namespace millrace;
  ::testing::InitGoogleTest(&argc, argv);
  CLI::App app{"Compares computations on a GPU with the CPU", "gpu_tests"};
  millrace::testing::tested().add_options(app);
  CLI11_PARSE(app, argc, argv);
  start_logging();
  try {
    // Under mpirun, reductions use the device's library even with one process.
    return std::getenv("OMPI_COMM_WORLD_SIZE") ? Cluster::run_with_world(millrace::testing::run_all)
                                               : Cluster::run(millrace::testing::run_all);
  } catch (const std::exception& problem) {
    std::cerr << "gpu_tests: " << problem.what() << "\n";
    return kWrongUse;
  }
}
