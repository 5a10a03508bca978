#include "millrace/trainer/optimizer/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/base/errors.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

TEST(Schedule, WarmsUpLinearlyByStep) {
  const Schedule schedule({.warmup_steps = 10, .warmup_factor = 0.1}, /*peak=*/2, /*epochs=*/12);
  EXPECT_DOUBLE_EQ(schedule.rate({0, 0}), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate({0.1, 5}), 1.1);
  EXPECT_DOUBLE_EQ(schedule.rate({0.2, 10}), 2);
}

TEST(Schedule, WarmsUpByEpochsWhereTheyAreGiven) {
  const Schedule schedule({.warmup_epochs = 0.5, .warmup_steps = 1000, .warmup_factor = 0}, 1, 12);
  EXPECT_DOUBLE_EQ(schedule.rate({0.25, 3}), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate({0.5, 6}), 1);
}

TEST(Schedule, FallsAtMilestones) {
  const Schedule schedule({.milestones = {8, 11}, .gamma = 0.1, .warmup_steps = 0}, 1, 12);
  EXPECT_DOUBLE_EQ(schedule.rate({7.99, 100}), 1);
  EXPECT_DOUBLE_EQ(schedule.rate({8, 101}), 0.1);
  EXPECT_NEAR(schedule.rate({11.5, 102}), 0.01, 1e-15);
}

TEST(Schedule, SaysWhatItIs) {
  const auto text = [](const ScheduleOptions& options) {
    return Schedule(options, 0.02, 12).text();
  };
  EXPECT_EQ(text({}),
            "0.02, after a linear warm-up from 2e-05 over 1000 steps, times 0.1 at epochs 8, 11");
  EXPECT_EQ(text({.type = "cosine", .warmup_epochs = 0.5}),
            "0.02, after a linear warm-up from 2e-05 over 0.5 epochs, along a cosine to 0 at epoch "
            "12");
  EXPECT_EQ(text({.type = "poly", .warmup_steps = 0}), "0.02, times (1 - epoch / 12)^0.9");
  EXPECT_EQ(text({.type = "exponential", .warmup_steps = 0}), "0.02, times 0.1^epoch");
  EXPECT_EQ(text({.type = "constant", .warmup_steps = 0}), "0.02, constant");
}

TEST(Schedule, FollowsACosineToZero) {
  const Schedule schedule({.type = "cosine", .warmup_steps = 0}, 2, 10);
  EXPECT_DOUBLE_EQ(schedule.rate({0, 1}), 2);
  EXPECT_NEAR(schedule.rate({5, 2}), 1, 1e-12);
  EXPECT_NEAR(schedule.rate({10, 3}), 0, 1e-12);
  EXPECT_NEAR(schedule.rate({10.1, 3}), 0, 1e-12);
}

TEST(Schedule, WarmsUpByImagesWhereTheyAreGiven) {
  const Schedule schedule({.type = "constant", .warmup_images = 80, .warmup_factor = 0.5}, 1, 12);
  EXPECT_DOUBLE_EQ(schedule.rate({0, 0, 0}), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate({0, 10, 40}), 0.75);
  EXPECT_DOUBLE_EQ(schedule.rate({0, 20, 80}), 1);
}

TEST(Schedule, FallsByAPowerOfWhatIsLeft) {
  const Schedule schedule({.type = "poly", .power = 2, .warmup_steps = 0}, 8, 10);
  EXPECT_DOUBLE_EQ(schedule.rate({0, 1}), 8);
  EXPECT_DOUBLE_EQ(schedule.rate({5, 2}), 2);
  EXPECT_DOUBLE_EQ(schedule.rate({10, 3}), 0);
}

TEST(Schedule, FallsByTheSameFactorInEachEpoch) {
  const Schedule schedule({.type = "exponential", .gamma = 0.25, .warmup_steps = 0}, 1, 10);
  EXPECT_DOUBLE_EQ(schedule.rate({0.5, 1}), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate({2, 2}), 0.0625);
}

std::string complaint_of_schedule(const ScheduleOptions& options, double epochs,
                                  std::int64_t epoch_images) {
  return testing::message_of<ConfigError>([&] {
    options.check({}, epochs);
    options.check_warmup(epochs, epoch_images, /*images_per_step=*/4);
  });
}

TEST(Schedule, ThatEndsBeforeItBeginsIsRefusedWithBothNumbers) {
  using ::testing::HasSubstr;
  EXPECT_EQ(complaint_of_schedule({}, 12, 1000), "");
  EXPECT_THAT(complaint_of_schedule({.milestones = {11, 8}}, 12, 1000),
              HasSubstr("must rise: 11, 8"));
  EXPECT_THAT(complaint_of_schedule({.milestones = {8, 8}}, 12, 1000), HasSubstr("must rise"));
  EXPECT_THAT(complaint_of_schedule({}, 10, 1000),
              HasSubstr("has 11, which is not before the end"));
  EXPECT_THAT(complaint_of_schedule({.warmup_epochs = 1, .warmup_images = 5}, 12, 1000),
              HasSubstr("two lengths of one warm-up"));
  EXPECT_THAT(complaint_of_schedule({.type = "cosine", .warmup_epochs = 3}, 2, 1000),
              HasSubstr("warmup_epochs = 3 is not shorter than the run, train.epochs = 2"));
  EXPECT_THAT(complaint_of_schedule({.warmup_epochs = 9}, 12, 1000),
              HasSubstr("begin at 8, before warmup_epochs = 9"));
  EXPECT_THAT(complaint_of_schedule({.type = "cosine"}, 12, 100),
              HasSubstr("schedule.warmup_steps = 1000, 40 epochs of 100 images, is not shorter "
                        "than the run, train.epochs = 12"));
  EXPECT_THAT(
      complaint_of_schedule({.warmup_images = 9000}, 12, 1000),
      HasSubstr("9 epochs of 1000 images, ends behind the first of schedule.milestones, 8"));
}

TEST(Schedule, StaysConstant) {
  const Schedule schedule({.type = "constant", .warmup_steps = 0}, 3, 10);
  EXPECT_DOUBLE_EQ(schedule.rate({9, 1000}), 3);
}

}  // namespace
}  // namespace millrace
