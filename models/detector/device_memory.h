// Memory of a device, as counted by libtorch's caching allocator.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace millrace {

/// Current and peak memory since the process started, in bytes.
struct DeviceMemory {
  std::int64_t tensors_now = 0;     // now held by tensors
  std::int64_t tensors_bytes = 0;   // peak held by tensors
  std::int64_t reserved_bytes = 0;  // peak taken from the driver: tensors and blocks kept for reuse
};

/// Returns nullopt for the CPU, for a device whose allocator does not count, and with libtorch
/// before 2.9, whose interface for this requires linking CUDA. Does not synchronize with the
/// device.
std::optional<DeviceMemory> peak_memory(at::Device device);

/// Returns the bytes that tensors on a device may still take: free memory of the driver and blocks
/// kept for reuse. nullopt as in peak_memory, or if the allocator does not ask the driver.
std::optional<double> free_device_memory(at::Device device);

}  // namespace millrace
