#include "millrace/models/detector/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <torch/version.h>

namespace millrace {

std::optional<DeviceMemory> peak_memory([[maybe_unused]] at::Device device) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
  if (device.is_cpu()) return std::nullopt;
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (!allocator) return std::nullopt;
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = allocator->getDeviceStats(device.index());
  return DeviceMemory{stats.allocated_bytes[kAll].peak, stats.reserved_bytes[kAll].peak};
#else
  return std::nullopt;
#endif
}

}  // namespace millrace
