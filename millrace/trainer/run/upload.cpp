#include "millrace/trainer/run/upload.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "millrace/trainer/detector/device_pixels.h"

namespace millrace {
namespace {

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
    item->value.on_device = copied_ahead(item->value, copies_);
    return item;
  }

  const std::unique_ptr<DataFlow<Batch>> flow_;
  const c10::Stream copies_;
  std::optional<std::optional<Delivery<Batch>>> ahead_;
  std::exception_ptr failure_;
};

}  // namespace

std::unique_ptr<DataFlow<Batch>> upload_ahead(std::unique_ptr<DataFlow<Batch>> flow,
                                              at::Device device) {
  if (device.is_cpu()) return flow;
  return std::make_unique<UploadingFlow>(std::move(flow), device);
}

}  // namespace millrace
