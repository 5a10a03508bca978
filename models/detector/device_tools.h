// What `trainer check-gpu` and the tests of a GPU ask of a device beyond libtorch's interfaces. The
// plug-in that has the device's kernels registers it, so that no program links the device's
// libraries.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/registry.h"

namespace millrace {

class DeviceTools {
 public:
  virtual ~DeviceTools() = default;

  /// Name and value: the device, its memory, driver and libraries, in the order to show them in.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  virtual Facts facts() const = 0;

  /// Runs `work` a few times and then records the kernels that it queues, its backward pass's among
  /// them, as one graph (CUDA graphs). Calling the result queues all of them at once; they read and
  /// write the same memory every time. Throws what `work` throws, and Error where it does what no
  /// graph can hold, such as waiting for the device.
  virtual std::function<void()> recorded(const std::function<void()>& work) const = 0;

  /// Sums `values` (float, on the device, contiguous) in place over a communicator of this device
  /// alone, which must not change them, with the library that sums gradients over several. Returns
  /// the library's name and version. Throws Error.
  virtual std::string sum_alone(const at::Tensor& values) const = 0;
};

/// Makes the tools of the calling thread's current device.
using DeviceToolsFactory = std::function<std::unique_ptr<DeviceTools>()>;

/// By the kind of device: "cuda", a plug-in's. Defined here, so that the plug-in can be opened by
/// programs that do not ask for them; program and plug-in share one.
inline Registry<DeviceToolsFactory>& device_tools() {
  static Registry<DeviceToolsFactory> all("tools of a device");
  return all;
}

}  // namespace millrace
