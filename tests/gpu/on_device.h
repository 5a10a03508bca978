// The device that gpu_tests and bench_gpu run on, as set on their command line.
#pragma once

#include <c10/core/Device.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "millrace/trainer/cluster/cluster.h"

namespace millrace::testing {

struct TestedDevice {
  std::string kind = "cuda";                // one of device_kinds() once the plug-in is loaded
  std::string plugin = "millrace_cuda.so";  // has the device's kernels; absolute after open()
  bool small = false;                       // tiny models, few steps, no speed tests

  void add_options(CLI::App& app);

  /// Loads the plug-in, opens the device of the process with this local rank, and disables TF32.
  /// Throws ConfigError.
  void open(std::int64_t local_rank);

  bool on_cuda() const { return kind == "cuda"; }

  at::Device device = at::kCPU;
  std::string missing;                         // error message if it could not be opened
  const Cluster* cluster = &Cluster::alone();  // the ranks that run the tests
};

/// Returns the only instance.
TestedDevice& tested();

/// A test that is skipped if the device is missing.
class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!tested().missing.empty()) GTEST_SKIP() << tested().missing;
  }

  const at::Device device_ = tested().device;
  const bool small_ = tested().small;
};

}  // namespace millrace::testing
