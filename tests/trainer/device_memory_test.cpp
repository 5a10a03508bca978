#include "millrace/models/detector/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "millrace/trainer/memory/step_memory.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
/// An allocator that reports statistics like a GPU's and allocates nothing.
class CountingAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t) override { throw std::logic_error("no memory here"); }
  void copy_data(void*, const void*, std::size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex) override {
    return {7000, 9000};
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[kAll].increase(static_cast<std::size_t>(100 + device) + taken);
    stats.allocated_bytes[kAll].decrease(90 + taken);
    stats.reserved_bytes[kAll].increase(400);
    return stats;
  }

  std::size_t taken = 0;  // bytes allocated and freed again
};

const at::Device kCounted(c10::DeviceType::PrivateUse1, 3);

CountingAllocator& counting_allocator() {
  static CountingAllocator allocator;
  c10::SetAllocator(kCounted.type(), &allocator);
  return allocator;
}

TEST(PeakMemory, MatchesDeviceAllocator) {
  counting_allocator();
  const auto peak = peak_memory(kCounted);
  ASSERT_TRUE(peak.has_value());
  EXPECT_EQ(peak->tensors_bytes, 103);
  EXPECT_EQ(peak->reserved_bytes, 400);
  EXPECT_EQ(peak->tensors_now, 13);
  EXPECT_EQ(free_device_memory(kCounted), 7000 + 400 - 13);
}

TEST(StepMemory, WarnsAboutSmallDevice) {
  auto& allocator = counting_allocator();
  std::vector<Batch> batches(1);
  batches[0].images.resize(1);
  const auto warning = [&](int width) {
    Log log;
    StepMemory memory(LargestBatch{.images = 1, .slot = {width, 10}}, kCounted, /*ranks=*/8);
    memory.before_step();
    allocator.taken = 500;  // a peak of 590 bytes above the 13 before the step
    memory.after_step(1, batches, std::vector<StepPlace>{{.width = 10, .height = 10}});
    allocator.taken = 0;
    return log.take();
  };
  EXPECT_EQ(warning(125), "") << "it needs 7388 of 7400 bytes";
  EXPECT_NE(warning(126), "");
}
#endif

TEST(PeakMemory, IsUnknownForCpu) { EXPECT_FALSE(peak_memory(at::kCPU).has_value()); }

}  // namespace
}  // namespace millrace::testing
