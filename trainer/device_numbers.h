// What the host learns of a device's work: numbers, and how long a part of it took.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>
#include <span>

#include "millrace/base/clock.h"

namespace millrace {

/// Numbers on their way from a device to the host. Work that is queued after this was made is not
/// waited for.
class DeviceNumbers {
 public:
  /// Queues the copy of `numbers`, of one dimension and any type.
  explicit DeviceNumbers(const at::Tensor& numbers);
  DeviceNumbers(const DeviceNumbers&) = delete;
  /// After a fault of the device, memory that it would be asked for stays lost.
  ~DeviceNumbers();

  /// Waits for them. They live as long as this.
  std::span<const double> get();

 private:
  at::Tensor on_host_;
  std::optional<c10::Event> copied_;  // on a GPU
};

/// How long the work between two places of the current stream takes; on the CPU, the time between
/// the calls.
class DeviceSpan {
 public:
  /// Begins here.
  explicit DeviceSpan(at::DeviceType device);

  void end();

  /// Between both, once the device is past `end`; waits for that.
  double seconds();

 private:
  at::DeviceType device_;
  Clock::time_point began_, ended_;
  std::optional<c10::Event> first_, last_;  // on a GPU
};

/// Waits for the work that this thread has queued on the device; on the CPU there is none.
void wait_for(at::Device device);

}  // namespace millrace
