// A test device with its own memory, like a GPU: any access except by copies crashes, and operators
// reject tensors on two devices.
#pragma once

#include <c10/core/Device.h>

#include <map>
#include <string>

namespace millrace::testing {

/// PyTorch's "privateuse1" device. Its operators, including the detectors'
/// (millrace/models/ops/operators.cpp), run on the CPU.
inline constexpr c10::DeviceType kOtherDevice = c10::DeviceType::PrivateUse1;

/// Returns the number of copies from CPU memory on a stream other than the default one.
int copies_on_own_streams();

/// Makes event queries throw during its lifetime, as after a GPU fault.
class BrokenDevice {
 public:
  BrokenDevice();
  BrokenDevice(const BrokenDevice&) = delete;
  ~BrokenDevice();
};

/// Traffic between the CPU and the device, summed over all threads.
struct Traffic {
  int uploads = 0;    // copies of tensors to the device
  int downloads = 0;  // copies of tensors to the CPU
  /// Number of times that the host would wait for all work of a GPU, by cause: each copy back, each
  /// upload that is synchronous or not from pinned memory, and each operator whose result size
  /// depends on values (nonzero etc.).
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
