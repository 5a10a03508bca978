// What the plug-in needs, with an error in words when it is missing.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/plugins/plugin.h"

MILLRACE_PLUGIN_NEEDS(
    "libcuda.so.1: the driver of an NVIDIA GPU\n"
    "libtorch_cuda.so: the CUDA half of libtorch (MILLRACE_CUDA=1 scripts/setup)\n")

namespace millrace {
namespace {

const bool has_gpu = [] {
  int count = 0;
  const auto status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0)
    throw Error(fmt::format("it needs an NVIDIA GPU, and there is none: {}",
                            status != cudaSuccess ? cudaGetErrorString(status) : "CUDA counts 0"));
  return true;
}();

}  // namespace
}  // namespace millrace
