#include "millrace/trainer/memory/step_memory.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "millrace/base/process/process_usage.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Takes a step with two images of 100 x 100 pixels in which the process reaches a new memory peak.
void reach_peak(StepMemory& memory, std::int64_t number) {
  std::vector<Batch> batches(1);
  batches[0].images.resize(2);
  memory.before_step();
  const auto taken = at::ones({peak_rss_bytes() - rss_bytes() + (32 << 20)}, at::kByte);
  memory.after_step(number, batches, std::vector<StepPlace>{{.width = 100, .height = 100}});
}

TEST(StepMemory, WarnsOnceAboutTooLargeBatch) {
  Log log;
  StepMemory memory(
      LargestBatch{.images = 2, .slot = {100'000, 100'000}, .planned = 9, .number = 4}, at::kCPU,
      1);
  reach_peak(memory, 1);
  EXPECT_THAT(log.take(), AllOf(HasSubstr("warning"), HasSubstr("step 1"), HasSubstr("batch 4"),
                                HasSubstr("100000 x 100000"), HasSubstr("data.batch_size"),
                                HasSubstr("train.passes"), HasSubstr("data.max_side")));
  reach_peak(memory, 2);
  EXPECT_THAT(log.take(), IsEmpty());
}

TEST(StepMemory, AcceptsBatchThatFits) {
  Log log;
  StepMemory memory(LargestBatch{.images = 2, .slot = {101, 100}, .planned = 9, .number = 4},
                    at::kCPU, 1);
  reach_peak(memory, 1);
  EXPECT_THAT(log.take(), IsEmpty());
}

TEST(StepMemory, AcceptsUnknownLargestBatch) {
  Log log;
  StepMemory memory(std::nullopt, at::kCPU, 1);
  reach_peak(memory, 1);
  EXPECT_THAT(log.take(), IsEmpty());
}

}  // namespace
}  // namespace millrace::testing
