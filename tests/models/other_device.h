// A device with memory of its own, as a GPU has: code that touches it except by copies crashes, and
// operators refuse tensors of two devices.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <string>

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

/// What passed between the CPU and the device, over all threads.
struct Traffic {
  int uploads = 0;    // copies of tensors to the device
  int downloads = 0;  // and back
  /// How often a GPU's host would stand still until the device has done all that it was given: for
  /// each copy back, each upload that is not both asynchronous and from page-locked memory, and
  /// each operator whose result has a size that the device decides (nonzero and the like). By what
  /// caused it.
  std::map<std::string, int> waits_by;

  int waits() const {
    int sum = 0;
    for (const auto& [cause, count] : waits_by) sum += count;
    return sum;
  }
};

/// The traffic since the last call.
Traffic take_traffic();

}  // namespace millrace::testing
