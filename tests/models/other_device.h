// A device with memory of its own, as a GPU has: code that touches it except by copies crashes, and
// operators refuse tensors of two devices.
#pragma once

#include <c10/core/Device.h>

namespace millrace::testing {

/// PyTorch's "privateuse1"; its operators are the CPU's, those of the detectors
/// (millrace/models/ops/operators.cpp) too.
inline constexpr c10::DeviceType kOtherDevice = c10::DeviceType::PrivateUse1;

/// Copies from the CPU's memory on a stream other than the default one.
int copies_on_own_streams();

/// While it lives, asking for an event throws, as after a fault on a GPU.
class BrokenDevice {
 public:
  BrokenDevice();
  BrokenDevice(const BrokenDevice&) = delete;
  ~BrokenDevice();
};

}  // namespace millrace::testing
