#include "millrace/models/detector/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <stdexcept>

namespace millrace::testing {
namespace {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
/// Counts as a GPU's allocator does, without giving memory.
class CountingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t) override { throw std::logic_error("no memory here"); }
  void copy_data(void*, const void*, std::size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[kAll].increase(static_cast<std::size_t>(100 + device));
    stats.allocated_bytes[kAll].decrease(90);
    stats.reserved_bytes[kAll].increase(400);
    return stats;
  }
};

TEST(PeakMemory, IsTheAllocatorsOfTheAskedDevice) {
  static CountingAllocator allocator;
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &allocator);
  const auto peak = peak_memory(at::Device(c10::DeviceType::PrivateUse1, 3));
  ASSERT_TRUE(peak.has_value());
  EXPECT_EQ(peak->tensors_bytes, 103);
  EXPECT_EQ(peak->reserved_bytes, 400);
}
#endif

TEST(PeakMemory, IsNotKnownOfTheCpu) { EXPECT_FALSE(peak_memory(at::kCPU).has_value()); }

}  // namespace
}  // namespace millrace::testing
