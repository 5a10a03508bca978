#include "trainer/schedule.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Schedule, WarmsUpLinearlyByStep) {
  const Schedule schedule({.warmup_steps = 10, .warmup_factor = 0.1}, /*peak=*/2, /*epochs=*/12);
  EXPECT_DOUBLE_EQ(schedule.rate(0, 0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(0.1, 5), 1.1);
  EXPECT_DOUBLE_EQ(schedule.rate(0.2, 10), 2);
}

TEST(Schedule, WarmsUpByEpochsWhereTheyAreGiven) {
  const Schedule schedule({.warmup_epochs = 0.5, .warmup_steps = 1000, .warmup_factor = 0}, 1, 12);
  EXPECT_DOUBLE_EQ(schedule.rate(0.25, 3), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(0.5, 6), 1);
}

TEST(Schedule, FallsAtMilestones) {
  const Schedule schedule({.milestones = {8, 11}, .gamma = 0.1, .warmup_steps = 0}, 1, 12);
  EXPECT_DOUBLE_EQ(schedule.rate(7.99, 100), 1);
  EXPECT_DOUBLE_EQ(schedule.rate(8, 101), 0.1);
  EXPECT_NEAR(schedule.rate(11.5, 102), 0.01, 1e-15);
}

TEST(Schedule, FollowsACosineToZero) {
  const Schedule schedule({.kind = "cosine", .warmup_steps = 0}, 2, 10);
  EXPECT_DOUBLE_EQ(schedule.rate(0, 1), 2);
  EXPECT_NEAR(schedule.rate(5, 2), 1, 1e-12);
  EXPECT_NEAR(schedule.rate(10, 3), 0, 1e-12);
  EXPECT_NEAR(schedule.rate(10.1, 3), 0, 1e-12);
}

TEST(Schedule, StaysConstant) {
  const Schedule schedule({.kind = "constant", .warmup_steps = 0}, 3, 10);
  EXPECT_DOUBLE_EQ(schedule.rate(9, 1000), 3);
}

}  // namespace
}  // namespace millrace
