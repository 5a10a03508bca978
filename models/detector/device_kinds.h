// The kinds of devices that a training may compute on, by the names that configurations use.
#pragma once

#include <c10/core/DeviceType.h>

#include <string>
#include <vector>

namespace millrace {

/// "cpu", "cuda", and the device that a loaded plug-in has registered with libtorch as its
/// PrivateUse1 (c10::register_privateuse1_backend), by its name.
std::vector<std::string> device_kinds();

/// REQUIRES: one of device_kinds().
c10::DeviceType device_type(const std::string& kind);

}  // namespace millrace
