#include "millrace/trainer/device_numbers.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>

namespace millrace {
namespace {

c10::Stream current_stream(at::DeviceType type) {
  const auto* devices = c10::impl::getDeviceGuardImpl(type);
  return devices->getStream(devices->getDevice());
}

}  // namespace

DeviceNumbers::DeviceNumbers(const at::Tensor& numbers) {
  const auto wide = numbers.detach().to(at::kDouble);
  if (!numbers.is_cuda()) {
    on_host_ = wide.to(at::kCPU);
    return;
  }
  on_host_ = at::empty(wide.sizes(), at::TensorOptions(at::kDouble).pinned_memory(true));
  on_host_.copy_(wide, /*non_blocking=*/true);
  copied_.emplace(at::kCUDA);
  copied_->record(c10::impl::getDeviceGuardImpl(at::kCUDA)->getStream(numbers.device()));
}

DeviceNumbers::~DeviceNumbers() {
  try {
    if (copied_) static_cast<void>(copied_->query());
  } catch (...) {
    static_cast<void>(on_host_.unsafeReleaseTensorImpl());
  }
}

std::span<const double> DeviceNumbers::get() {
  if (copied_) copied_->synchronize();
  return {on_host_.const_data_ptr<double>(), static_cast<std::size_t>(on_host_.numel())};
}

DeviceSpan::DeviceSpan(at::DeviceType device) : device_(device), began_(Clock::now()) {
  if (device_ == at::kCPU) return;
  first_.emplace(device_, c10::EventFlag::BACKEND_DEFAULT);  // the default flag disables timing
  first_->record(current_stream(device_));
}

void DeviceSpan::end() {
  ended_ = Clock::now();
  if (device_ == at::kCPU) return;
  last_.emplace(device_, c10::EventFlag::BACKEND_DEFAULT);
  last_->record(current_stream(device_));
}

double DeviceSpan::seconds() {
  if (!last_) return std::chrono::duration<double>(ended_ - began_).count();
  last_->synchronize();
  return first_->elapsedTime(*last_) / 1e3;  // converts from milliseconds
}

void wait_for(at::Device device) {
  if (device.is_cpu()) return;
  const auto* devices = c10::impl::getDeviceGuardImpl(device.type());
  devices->synchronizeStream(devices->getStream(device));
}

}  // namespace millrace
