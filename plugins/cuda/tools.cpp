// Device tools for `trainer check-gpu` and the GPU tests: facts, CUDA graphs, and a sum over one
// rank. This code has never run on a GPU.
#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/models/detector/device_tools.h"
#include "millrace/plugins/cuda/driver.h"
#include "millrace/plugins/cuda/sum_alone.h"

namespace millrace {
namespace {

constexpr int kWarmUp =
    3;  // libraries choose algorithms and allocate in these runs, which a graph cannot record

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

class CudaTools final : public DeviceTools {
 public:
  Facts facts() const override {
    int device = 0, driver = 0, runtime = 0;
    check(cudaGetDevice(&device), "cannot query the current GPU");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cannot query the GPU's properties");
    check(cudaDriverGetVersion(&driver), "cannot query the driver version");
    check(cudaRuntimeGetVersion(&runtime), "cannot query the CUDA runtime version");
    const auto version = cuda::installed_driver();
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cannot query the GPU's memory");
    return {{"GPU", properties.name},
            {"GPUs that this process sees", fmt::format("{}", c10::cuda::device_count())},
            {"compute capability", fmt::format("{}.{}", properties.major, properties.minor)},
            {"multiprocessors", fmt::format("{}", properties.multiProcessorCount)},
            {"memory",
             fmt::format("{:.1f} GiB, {:.1f} GiB free", static_cast<double>(total) / (1 << 30),
                         static_cast<double>(free) / (1 << 30))},
            {"level-2 cache",
             fmt::format("{:.0f} MiB", static_cast<double>(properties.l2CacheSize) / (1 << 20))},
            {"driver", version.empty() ? "unknown" : version},
            {"CUDA that the driver supports", cuda::version_text(driver)},
            {"CUDA runtime", cuda::version_text(runtime)},
            {"cuDNN", fmt::format("{}", at::detail::getCUDAHooks().versionCuDNN())},
            {"NCCL", cuda::nccl_version()}};
  }

  std::function<void()> recorded(const std::function<void()>& work) const override {
    const auto stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false);
    const auto graph = std::make_shared<at::cuda::CUDAGraph>();
    c10::cuda::getCurrentCUDAStream().synchronize();  // it may still compute the input of `work`
    {
      const c10::cuda::CUDAStreamGuard on(stream);
      for (int i = 0; i < kWarmUp; ++i) work();
      stream.synchronize();
      graph->capture_begin();
      try {
        work();
      } catch (...) {
        // The graph is lost, but the stream must be usable again.
        try {
          graph->capture_end();
        } catch (const std::exception&) {
        }
        throw;
      }
      graph->capture_end();
    }
    stream.synchronize();
    return [graph] { graph->replay(); };
  }

  std::string sum_alone(const at::Tensor& values) const override {
    const auto device = values.device();
    const c10::cuda::CUDAGuard guard(device);
    return cuda::sum_alone(values.mutable_data_ptr<float>(),
                           static_cast<std::size_t>(values.numel()), device.index(),
                           c10::cuda::getCurrentCUDAStream(device.index()).stream());
  }
};

MILLRACE_REGISTER(device_tools().add<NoOptions>("cuda", "NVIDIA GPU",
                                                [] { return std::make_unique<CudaTools>(); }));

}  // namespace
}  // namespace millrace
