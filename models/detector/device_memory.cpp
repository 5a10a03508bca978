#include "millrace/models/detector/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <torch/version.h>

namespace millrace {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
namespace {

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

/// Returns nullptr for the CPU and for a device whose allocator does not count.
c10::DeviceAllocator* counting_allocator(at::Device device) {
  if (device.is_cpu()) return nullptr;
  return dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
}

/// Returns the driver's free memory; nullopt if libtorch or the allocator does not ask for it.
template <class Allocator>
std::optional<double> left_on_device(Allocator& allocator, at::DeviceIndex device) try {
  if constexpr (requires { allocator.getMemoryInfo(device); })
    return static_cast<double>(allocator.getMemoryInfo(device).first);
  return std::nullopt;
} catch (const c10::NotImplementedError&) {
  return std::nullopt;
}

}  // namespace

std::optional<DeviceMemory> peak_memory(at::Device device) {
  auto* allocator = counting_allocator(device);
  if (!allocator) return std::nullopt;
  const auto stats = allocator->getDeviceStats(device.index());
  const auto &tensors = stats.allocated_bytes[kAll], &reserved = stats.reserved_bytes[kAll];
  return DeviceMemory{tensors.current, tensors.peak, reserved.peak};
}

std::optional<double> free_device_memory(at::Device device) {
  auto* allocator = counting_allocator(device);
  if (!allocator) return std::nullopt;
  auto left = left_on_device(*allocator, device.index());
  const auto stats = allocator->getDeviceStats(device.index());
  if (left)
    *left += static_cast<double>(stats.reserved_bytes[kAll].current -
                                 stats.allocated_bytes[kAll].current);
  return left;
}
#else
std::optional<DeviceMemory> peak_memory(at::Device) { return std::nullopt; }
std::optional<double> free_device_memory(at::Device) { return std::nullopt; }
#endif

}  // namespace millrace
