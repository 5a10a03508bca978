#include "millrace/trainer/optimizer/schedule.h"

#include <gmock/gmock.h>

#include "millrace/base/errors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Case {
  const char* name;
  ScheduleOptions options;
  std::vector<std::pair<ScheduleTime, double>>
      rates;  // for a run of 10 epochs with a peak rate of 2
};

TEST(Schedule, MatchesFormula) {
  const Case cases[] = {
      {"steps",
       {.milestones = {}, .warmup = "10 steps", .warmup_factor = 0.1},
       {{{0, 0}, 0.2}, {{0.1, 5}, 1.1}, {{0.2, 10}, 2}}},
      {"epochs",
       {.milestones = {}, .warmup = "0.5 epochs", .warmup_factor = 0},
       {{{0.25, 3}, 1}, {{0.5, 6}, 2}}},
      {"images",
       {.type = ScheduleType::constant, .warmup = "80 images", .warmup_factor = 0.5},
       {{{0, 0, 0}, 1}, {{0, 10, 40}, 1.5}, {{0, 20, 80}, 2}}},
      {"step",
       {.milestones = {8, 9}, .gamma = 0.1, .warmup = "0 steps"},
       {{{7.99, 100}, 2}, {{8, 101}, 0.2}, {{9.5, 102}, 0.02}}},
      {"cosine",
       {.type = ScheduleType::cosine, .warmup = "0 steps"},
       {{{0, 1}, 2}, {{5, 2}, 1}, {{10, 3}, 0}, {{10.1, 3}, 0}}},
      {"warmup_cosine",
       {.type = ScheduleType::warmup_cosine,
        .end_factor = 0.05,
        .end_epochs = 2,
        .warmup = "2 epochs",
        .warmup_factor = 0,
        .warmup_power = 2},
       {{{0, 0}, 0}, {{1, 1}, 0.5}, {{2, 2}, 2}, {{5, 5}, 1.05}, {{8, 8}, 0.1}, {{9.9, 9}, 0.1}}},
      {"poly",
       {.type = ScheduleType::poly, .power = 2, .warmup = "0 steps"},
       {{{0, 1}, 2}, {{5, 2}, 0.5}, {{10, 3}, 0}}},
      {"exponential",
       {.type = ScheduleType::exponential, .gamma = 0.25, .warmup = "0 steps"},
       {{{0.5, 1}, 1}, {{2, 2}, 0.125}}},
      {"constant", {.type = ScheduleType::constant, .warmup = "0 steps"}, {{{9, 1000}, 2}}}};
  for (const auto& [name, options, rates] : cases)
    for (const auto& [time, rate] : rates)
      EXPECT_NEAR(Schedule(options, 2, 10).rate(time), rate, 1e-15) << name << " " << time.progress;
}

TEST(Schedule, DescribesItself) {
  const auto text = [](const ScheduleOptions& options) {
    return Schedule(options, 0.02, 12).text();
  };
  EXPECT_THAT(text({}), ContainsRegex("0.02, .*linear.* 2e-05 .*1000 steps, .*0.1 .*8, 11"));
  EXPECT_THAT(text({.type = ScheduleType::cosine, .warmup = "0.5 epochs"}),
              ContainsRegex("0.02, .*linear.* 2e-05 .*0.5 epochs, .*cosine .*0 .*12"));
  EXPECT_THAT(text({.type = ScheduleType::warmup_cosine,
                    .end_factor = 0.05,
                    .end_epochs = 1,
                    .warmup = "2 epochs",
                    .warmup_factor = 0,
                    .warmup_power = 2}),
              ContainsRegex("0.02, .*quadratic.* 0 .*2 epochs, .*cosine .*0.001 .*11"));
  EXPECT_THAT(text({.type = ScheduleType::poly, .warmup = "0 steps"}),
              HasSubstr("0.02, times (1 - epoch / 12)^0.9"));
  EXPECT_THAT(text({.type = ScheduleType::exponential, .warmup = "0 steps"}),
              HasSubstr("0.02, times 0.1^epoch"));
  EXPECT_THAT(text({.type = ScheduleType::constant, .warmup = "0 steps"}),
              HasSubstr("0.02, constant"));
}

TEST(Schedule, RejectsInvalidOptions) {
  const struct {
    ScheduleOptions options;
    double epochs;
    std::int64_t epoch_images;
    std::string complaint;
  } cases[] = {
      {{.milestones = {11, 8}}, 12, 1000, "ascending: 11, 8"},
      {{.milestones = {8, 8}}, 12, 1000, "ascending: 8, 8"},
      {{}, 10, 1000, "milestones contains 11"},
      {{.type = ScheduleType::cosine, .warmup = "3 epochs"}, 2, 1000, "train.epochs = 2"},
      {{.warmup = "9 epochs"}, 12, 1000, "schedule.milestones, 8"},
      {{.type = ScheduleType::cosine},
       12,
       100,
       "schedule.warmup = \"1000 steps\", 40 epochs of 100 images"},
      {{.warmup = "9000 images"}, 12, 1000, "9 epochs of 1000 images"},
  };
  const auto complaint = [](const ScheduleOptions& options, double epochs, std::int64_t images) {
    return message_of<ConfigError>([&] {
      options.check({}, epochs);
      options.check_warmup(epochs, images, /*images_per_step=*/4);
    });
  };
  for (const auto& one : cases)
    EXPECT_THAT(complaint(one.options, one.epochs, one.epoch_images), HasSubstr(one.complaint));
  for (const auto* good : {"1000 steps", "0 steps", "1 image", "0.5 epochs"})
    EXPECT_EQ(complaint({.warmup = good}, 12, 1000), "") << good;
  for (const auto* bad : {"", "500", "steps", "-1 steps", "1.5 steps", "0.5 images", "5 minutes"})
    EXPECT_THAT(complaint({.warmup = bad}, 12, 1000),
                HasSubstr(std::string("warmup = \"") + bad + "\""));
}

}  // namespace
}  // namespace millrace::testing
