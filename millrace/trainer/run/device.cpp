#include "millrace/trainer/run/device.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/buffer_pool.h"

namespace millrace {
namespace {

/// Page-locked memory: libtorch's, which GPUs read without a copy in between.
MemorySource page_locked() {
  struct Held {
    std::mutex mutex;
    std::map<void*, at::Tensor> blocks;
  };
  const auto held = std::make_shared<Held>();
  return {[held](std::size_t bytes) {
            auto block = at::empty({static_cast<std::int64_t>(bytes)},
                                   at::TensorOptions(at::kByte).pinned_memory(true));
            void* memory = block.mutable_data_ptr();
            const std::lock_guard lock(held->mutex);
            held->blocks.emplace(memory, std::move(block));
            return memory;
          },
          [held](void* memory) {
            const std::lock_guard lock(held->mutex);
            held->blocks.erase(memory);
          }};
}

}  // namespace

at::Device open_device(const std::string& kind, std::int64_t local_rank) {
  if (kind == "cpu") return at::kCPU;
  if (!c10::impl::hasDeviceGuardImpl(at::kCUDA))
    throw ConfigError(
        "train.device = \"cuda\": this libtorch is for processors alone; install the CUDA half "
        "(MILLRACE_CUDA=1 scripts/setup) and name the operators in the configuration: "
        "plugins = [\"millrace_cuda.so\"]");
  const auto* devices = c10::impl::getDeviceGuardImpl(at::kCUDA);
  const auto count = devices->deviceCount();
  if (count == 0) throw ConfigError("train.device = \"cuda\": no NVIDIA GPU is to be had");
  if (local_rank >= count)
    throw ConfigError(fmt::format(
        "train.device = \"cuda\": {} processes or more were started on a host that has {} GPUs: "
        "start one a GPU (mpirun --map-by ppr:{}:node)",
        local_rank + 1, count, count));
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(local_rank));
  devices->setDevice(device);
  return device;
}

void make_batches_for(at::Device device) {
  if (device.is_cuda()) set_batch_memory(BufferPool(page_locked()));
}

}  // namespace millrace
