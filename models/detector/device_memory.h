// Memory of a device, as libtorch's caching allocator counts it.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace millrace {

/// Peaks since the process began, and the present.
struct DeviceMemory {
  std::int64_t tensors_now = 0;     // held by tensors
  std::int64_t tensors_bytes = 0;   // held by tensors at one time
  std::int64_t reserved_bytes = 0;  // taken from the driver: the above, and blocks kept for reuse
};

/// Nothing for the CPU, for a device whose allocator does not count, and with libtorch before 2.9,
/// which has no interface for this that works without linking CUDA. The host does not wait for the
/// device.
std::optional<DeviceMemory> peak_memory(at::Device device);

/// Bytes that tensors on a device may still take: what the driver has left, and blocks kept for
/// reuse. nullopt as with peak_memory, or if the allocator does not ask the driver.
std::optional<double> free_device_memory(at::Device device);

}  // namespace millrace
