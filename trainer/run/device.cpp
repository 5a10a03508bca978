#include "millrace/trainer/run/device.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/models/detector/device_kinds.h"
#include "millrace/models/detector/device_pixels.h"
#include "millrace/trainer/cluster/gpu_address.h"

namespace millrace {
namespace {

/// Returns true if the device has had no fault and is still usable by this process.
bool works(at::Device device) noexcept {
  try {
    const auto* devices = c10::impl::getDeviceGuardImpl(device.type());
    static_cast<void>(devices->queryStream(devices->getDefaultStream(device)));
    return true;
  } catch (...) {
    return false;
  }
}

/// Returns a source of libtorch's page-locked memory, from which GPUs copy directly.
MemorySource page_locked(at::Device device) {
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
          [held, device](void* memory) {
            const std::lock_guard lock(held->mutex);
            const auto block = held->blocks.extract(memory);
            // When libtorch takes the memory back, it queries the device in a destructor, where an
            // exception ends the process. Therefore the memory is leaked after a fault of the
            // device.
            if (!works(device)) static_cast<void>(new at::Tensor(block.mapped()));
          }};
}

class UploadingFlow final : public DataFlow<Batch> {
 public:
  UploadingFlow(std::unique_ptr<DataFlow<Batch>> flow, at::Device device)
      : flow_(std::move(flow)),
        copies_(c10::impl::getDeviceGuardImpl(device.type())->getNewStream(device)) {}

  std::optional<Delivery<Batch>> next() override {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    auto item = ahead_ ? *std::exchange(ahead_, std::nullopt) : upload(flow_->next());
    if (item && flow_->is_ready(std::chrono::milliseconds(0))) look_ahead();
    return item;
  }

  bool is_ready(std::chrono::milliseconds most) override {
    return ahead_ || failure_ || flow_->is_ready(most);
  }
  std::int64_t epoch_size() const override { return flow_->epoch_size(); }
  FlowReport report() const override { return flow_->report(); }

 private:
  /// Fetches the next batch. An exception is rethrown when that batch is requested.
  void look_ahead() {
    try {
      ahead_ = upload(flow_->next());
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::optional<Delivery<Batch>> upload(std::optional<Delivery<Batch>> item) const {
    if (!item) return item;
    item->value.on_device = copied_ahead(item->value, copies_);
    return item;
  }

  const std::unique_ptr<DataFlow<Batch>> flow_;
  const c10::Stream copies_;
  std::optional<std::optional<Delivery<Batch>>> ahead_;
  std::exception_ptr failure_;
};

}  // namespace

at::Device open_device(const std::string& kind, std::int64_t local_rank) {
  if (kind == "cpu") return at::kCPU;
  if (kind != "cuda") {
    const auto type = device_type(kind);
    const auto count = c10::impl::getDeviceGuardImpl(type)->deviceCount();
    const auto own = gpu_of_rank(local_rank, count).value_or(local_rank);
    return {type, static_cast<at::DeviceIndex>(own)};
  }
  if (!c10::impl::hasDeviceGuardImpl(at::kCUDA))
    throw ConfigError(
        "train.device = \"cuda\": this libtorch supports only the CPU; install the CUDA packages "
        "(MILLRACE_CUDA=1 scripts/setup) and add the operators to the configuration: plugins = "
        "[\"millrace_cuda.so\"]");
  const auto* devices = c10::impl::getDeviceGuardImpl(at::kCUDA);
  const auto count = devices->deviceCount();
  if (count == 0) throw ConfigError("train.device = \"cuda\": no NVIDIA GPU found");
  const auto gpu = gpu_of_rank(local_rank, count);
  if (!gpu)
    throw ConfigError(
        fmt::format("train.device = \"cuda\": at least {} processes were started on a host with {} "
                    "GPUs; start one per GPU (mpirun --map-by ppr:{}:node)",
                    local_rank + 1, count, count));
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(*gpu));
  devices->setDevice(device);
  return device;
}

void make_batches_for(at::Device device) {
  if (device.is_cuda()) set_batch_memory(BufferPool(page_locked(device)));
}

std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device) {
  if (device.is_cpu()) return flow;
  return std::make_unique<UploadingFlow>(std::move(flow), device);
}

}  // namespace millrace
