// Declares the libraries that the plug-in needs, and throws a readable error if the driver or GPU
// is missing.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "millrace/base/errors.h"
#include "millrace/plugins/cuda/driver.h"
#include "millrace/plugins/plugin.h"

MILLRACE_PLUGIN_NEEDS(
    "libcuda.so.1: an NVIDIA driver (580 or later for CUDA 13)\n"
    "libtorch_cuda.so: libtorch with CUDA (MILLRACE_CUDA=1 scripts/setup)\n")

namespace millrace {
namespace {

cuda::DriverFacts driver_facts() {
  cuda::DriverFacts facts;
  if (const auto status = cudaGetDeviceCount(&facts.count); status != cudaSuccess)
    facts.error = cudaGetErrorString(status);
  cudaDriverGetVersion(&facts.supported_cuda);
  cudaRuntimeGetVersion(&facts.runtime);
  facts.driver = cuda::installed_driver();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    facts.has_visible_devices = true, facts.visible_devices = visible;
  return facts;
}

const bool has_gpu = [] {
  if (const auto what = cuda::missing_driver_text(driver_facts()); !what.empty()) throw Error(what);
  return true;
}();

}  // namespace
}  // namespace millrace
