// Tests that need a GPU; elsewhere they say why they are skipped.
#pragma once

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "millrace/base/config.h"
#include "millrace/plugins/loader.h"

namespace millrace::testing {

/// Whether there are so many GPUs and a libtorch for them. The first call opens its CUDA half.
inline bool has_gpus(int count) {
  static const void* const cuda_half = [] {
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // the same bytes each time
    return dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
  }();
  return cuda_half && at::globalContext().hasCUDA() &&
         c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount() >= count;
}

/// With the operators' plug-in, and fp32 products in fp32.
inline void prepare_gpu() {
  auto tree = parse_config(fmt::format("plugins = ['{}']", MILLRACE_CUDA_PLUGIN), "test");
  load_plugins(tree);
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
}

class OnAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpus(1)) GTEST_SKIP() << "no GPU, or a libtorch without CUDA";
    prepare_gpu();
  }
};

}  // namespace millrace::testing
