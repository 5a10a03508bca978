// gpu_tests: what a GPU changes, against the CPU. `trainer check-gpu` starts it, and ctest (label
// gpu); its folder has the program `trainer`, which some tests run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/exit_codes.h"
#include "tests/gpu/on_device.h"

namespace millrace::testing {
namespace {

/// Without a GPU each test is skipped; another device is asked for by name and has to be there.
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
  CLI::App app{"Tests of what a GPU changes, against the CPU", "gpu_tests"};
  millrace::testing::tested().add_options(app);
  CLI11_PARSE(app, argc, argv);
  start_logging();
  try {
    // mpirun with one process: its sums go through the device's library, too.
    return std::getenv("OMPI_COMM_WORLD_SIZE") ? Cluster::run_with_world(millrace::testing::run_all)
                                               : Cluster::run(millrace::testing::run_all);
  } catch (const std::exception& problem) {
    std::cerr << "gpu_tests: " << problem.what() << "\n";
    return kWrongUse;
  }
}
