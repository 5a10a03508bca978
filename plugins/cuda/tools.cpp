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
#ifdef MILLRACE_NCCL
#include <nccl.h>
#endif

#include <memory>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/models/detector/device_tools.h"
#include "millrace/plugins/cuda/driver.h"

namespace millrace {
namespace {

constexpr int kWarmUp =
    3;  // libraries choose algorithms and allocate in these runs, which a graph cannot record

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error(fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

#ifdef MILLRACE_NCCL
void check_nccl(ncclResult_t status, const char* what) {
  if (status != ncclSuccess)
    throw Error(fmt::format("NCCL: {}: {}", what, ncclGetErrorString(status)));
}

std::string nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "cannot read its version");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// All-reduces `values` over a communicator of their GPU alone, and waits for the result.
void all_reduce_alone(const at::Tensor& values) {
  int gpu = values.device().index();
  const auto stream = c10::cuda::getCurrentCUDAStream(values.device().index()).stream();
  ncclComm_t communicator = nullptr;
  check_nccl(ncclCommInitAll(&communicator, 1, &gpu), "cannot create a communicator for one GPU");
  const std::unique_ptr<ncclComm, ncclResult_t (*)(ncclComm_t)> owner(communicator,
                                                                      ncclCommDestroy);
  auto* const numbers = values.mutable_data_ptr<float>();
  check_nccl(ncclAllReduce(numbers, numbers, static_cast<std::size_t>(values.numel()), ncclFloat,
                           ncclSum, communicator, stream),
             "cannot all-reduce on one GPU");
  check(cudaStreamSynchronize(stream), "NCCL: cannot all-reduce on one GPU");
}
#else
std::string nccl_version() { return "none"; }

void all_reduce_alone(const at::Tensor&) {
  throw Error("this plug-in was built without NCCL (nccl.h, libnccl.so.2)");
}
#endif

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
            {"NCCL", nccl_version()}};
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
    const c10::cuda::CUDAGuard guard(values.device());
    all_reduce_alone(values);
    return "NCCL " + nccl_version();
  }
};

MILLRACE_REGISTER(device_tools().add<NoOptions>("cuda", "NVIDIA GPU",
                                                [] { return std::make_unique<CudaTools>(); }));

}  // namespace
}  // namespace millrace
