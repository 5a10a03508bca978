#include "millrace/trainer/run/upload.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace millrace {
namespace {

/// What the pixels of an uploaded batch carry: their memory, and the copy on the device.
struct Uploaded {
  std::shared_ptr<std::uint8_t[]> memory;
  at::Tensor on_device;
  std::shared_ptr<c10::Event> copied;

  /// A copy that is not over yet is waited for.
  void operator()(std::uint8_t*) {
    copied->synchronize();
    memory.reset();
  }
};

at::Tensor as_tensor(const Batch& batch) {
  const auto count = static_cast<std::int64_t>(batch.size());
  return at::from_blob(batch.pixels.get(), {count, batch.height, batch.width, 3}, at::kByte);
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
  /// What becomes of the next batch is told in its turn.
  void look_ahead() {
    try {
      ahead_ = upload(flow_->next());
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::optional<Delivery<Batch>> upload(std::optional<Delivery<Batch>> item) const {
    if (!item) return item;
    auto& pixels = item->value.pixels;
    const c10::StreamGuard on(copies_);
    Uploaded uploaded{pixels,
                      as_tensor(item->value).to(copies_.device(), at::kByte, /*non_blocking=*/true),
                      std::make_shared<c10::Event>(copies_.device_type())};
    uploaded.copied->record(copies_);
    auto* memory = pixels.get();
    pixels = std::shared_ptr<std::uint8_t[]>(memory, std::move(uploaded));
    return item;
  }

  const std::unique_ptr<DataFlow<Batch>> flow_;
  const c10::Stream copies_;
  std::optional<std::optional<Delivery<Batch>>> ahead_;
  std::exception_ptr failure_;
};

}  // namespace

at::Tensor pixels_on(const Batch& batch, at::Device device) {
  if (device.is_cpu()) return as_tensor(batch);
  const auto* uploaded = std::get_deleter<Uploaded>(batch.pixels);
  // Pixels that are part of another batch's have that batch's.
  if (!uploaded || uploaded->on_device.numel() != static_cast<std::int64_t>(batch.bytes()))
    return as_tensor(batch).to(device);
  const auto* devices = c10::impl::getDeviceGuardImpl(device.type());
  const auto stream = devices->getStream(uploaded->on_device.device());
  uploaded->copied->block(stream);
  devices->recordDataPtrOnStream(uploaded->on_device.storage().data_ptr(), stream);
  return uploaded->on_device;
}

std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device) {
  if (device.is_cpu()) return flow;
  return std::make_unique<UploadingFlow>(std::move(flow), device);
}

}  // namespace millrace
