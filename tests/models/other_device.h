// A device that is not this process's memory, as a GPU is not: who touches its memory by other ways
// than copies crashes, and operators refuse tensors of two devices.
#pragma once

#include <c10/core/Device.h>

namespace millrace::testing {

/// PyTorch's "privateuse1"; its operators are the CPU's, those of the detectors
/// (millrace/models/ops/operators.cpp) too.
inline constexpr c10::DeviceType kOtherDevice = c10::DeviceType::PrivateUse1;

/// Copies from the CPU's memory that were asked for while a stream of their own was the current
/// one.
int copies_on_own_streams();

}  // namespace millrace::testing
