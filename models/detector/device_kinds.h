// The kinds of devices that a training can use, by their names in configurations.
#pragma once

#include <c10/core/DeviceType.h>

#include <string>
#include <vector>

namespace millrace {

/// Returns "cpu", "cuda", and the name of the device that a loaded plug-in has registered with
/// libtorch as PrivateUse1 (c10::register_privateuse1_backend), if any.
inline std::vector<std::string> device_kinds() {
  std::vector<std::string> kinds{"cpu", "cuda"};
  if (c10::is_privateuse1_backend_registered()) kinds.push_back(c10::get_privateuse1_backend());
  return kinds;
}

/// Returns the device type of `kind`, which must be one of device_kinds().
inline c10::DeviceType device_type(const std::string& kind) {
  if (kind == "cpu") return c10::DeviceType::CPU;
  return kind == "cuda" ? c10::DeviceType::CUDA : c10::DeviceType::PrivateUse1;
}

}  // namespace millrace
