// Transfers of numbers from a device to the host, and timing of work on a device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>
#include <span>

#include "millrace/base/clock.h"

namespace millrace {

/// Numbers that are being copied from a device to the host. get() does not wait for work queued
/// after the construction.
class DeviceNumbers {
 public:
  /// Queues the copy of `numbers`, a one-dimensional tensor of any type.
  explicit DeviceNumbers(const at::Tensor& numbers);
  DeviceNumbers(const DeviceNumbers&) = delete;
  /// After a fault of the device, the page-locked memory is leaked, since releasing it would query
  /// the device.
  ~DeviceNumbers();

  /// Waits for the copy. The span is valid while this object lives.
  std::span<const double> get();

 private:
  at::Tensor on_host_;
  std::optional<c10::Event> copied_;  // event after the copy; nullopt on the CPU
};

/// Measures the time of the work queued on the current stream between construction and end(); on
/// the CPU, the wall time between the two.
class DeviceSpan {
 public:
  explicit DeviceSpan(at::DeviceType device);

  void end();

  /// Returns the time in seconds. Waits until the device has passed end().
  double seconds();

 private:
  at::DeviceType device_;
  Clock::time_point began_, ended_;
  std::optional<c10::Event> first_, last_;  // events at both ends; nullopt on the CPU
};

/// Waits for the work that this thread has queued on the device; does nothing on the CPU.
void wait_for(at::Device device);

}  // namespace millrace
