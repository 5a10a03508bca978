// Functions of a device that `trainer check-gpu` and the GPU tests need beyond libtorch's
// interfaces. The plug-in with the device's kernels registers them, so that no program links the
// device's libraries.
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

  /// Names and values of the device, its memory, driver and libraries, in display order.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  virtual Facts facts() const = 0;

  /// Runs `work` a few times and then captures the kernels that it queues, those of its backward
  /// pass included, as one graph (CUDA graphs). Calling the result queues all of them at once; they
  /// read and write the same memory each time. Throws the exceptions of `work`, and Error if `work`
  /// does something that cannot be captured, such as synchronizing with the device.
  virtual std::function<void()> recorded(const std::function<void()>& work) const = 0;

  /// All-reduces `values` (float, on the device, contiguous) in place over a communicator of this
  /// device alone, which must not change them, with the library that sums gradients over several
  /// devices. Returns the library's name and version. Throws Error.
  virtual std::string sum_alone(const at::Tensor& values) const = 0;
};

/// Makes the tools of the calling thread's current device.
using DeviceToolsFactory = std::function<std::unique_ptr<DeviceTools>()>;

/// The registry of tools by kind of device: "cuda" or a plug-in's. Inline, so that programs that do
/// not use it can load the plug-in; program and plug-in share one instance.
inline Registry<DeviceToolsFactory>& device_tools() {
  static Registry<DeviceToolsFactory> all("device tools");
  return all;
}

}  // namespace millrace
