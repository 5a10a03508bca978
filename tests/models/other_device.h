// A device with memory of its own, like a GPU: accessing it other than by copies crashes, and
// operators reject tensors of two devices.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <string>

namespace millrace::testing {

/// PyTorch's "privateuse1". Its operators run on the CPU, including those of the detectors
/// (millrace/models/ops/operators.cpp).
inline constexpr c10::DeviceType kOtherDevice = c10::DeviceType::PrivateUse1;

/// Returns the number of copies from CPU memory on a stream other than the default one.
int copies_on_own_streams();

/// Makes requests for events throw during its lifetime, as after a fault on a GPU.
class BrokenDevice {
 public:
  BrokenDevice();
  BrokenDevice(const BrokenDevice&) = delete;
  ~BrokenDevice();
};

/// Traffic between the CPU and the device, over all threads.
struct Traffic {
  int uploads = 0;    // copies of tensors to the device
  int downloads = 0;  // copies of tensors to the CPU
  /// Number of times a GPU's host would wait for all work of the device, by cause: for each copy
  /// back, each upload that is not both asynchronous and from page-locked memory, and each operator
  /// whose result has a size that the device decides (nonzero and the like).
  std::map<std::string, int> waits_by;

  int waits() const {
    int sum = 0;
    for (const auto& [cause, count] : waits_by) sum += count;
    return sum;
  }
};

/// Returns the traffic since the last call.
Traffic take_traffic();

}  // namespace millrace::testing
