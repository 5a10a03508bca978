// The kinds of devices that a training can use, by their names in configurations.
#pragma once

#include <c10/core/DeviceType.h>

#include <string>
#include <vector>

namespace millrace {

/// Returns "cpu", "cuda", and the name of the device that a loaded plug-in has registered with
/// libtorch as PrivateUse1 (c10::register_privateuse1_backend), if any.
std::vector<std::string> device_kinds();

/// Returns the device type of `kind`, which must be one of device_kinds().
c10::DeviceType device_type(const std::string& kind);

}  // namespace millrace
