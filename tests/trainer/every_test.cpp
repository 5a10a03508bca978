#include "trainer/every.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "tests/fake_training.h"
#include "tests/trainer/scratch.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using testing::fake_plan;
using testing::LineDetector;
using testing::Scratch;

struct NoteSteps final : Callback {
  std::vector<std::int64_t>& steps;
  explicit NoteSteps(std::vector<std::int64_t>& into) : steps(into) {}
  void trigger(TrainState& state) override { steps.push_back(state.at.step); }
};

std::vector<std::int64_t> triggered(const std::string& period, std::int64_t max_steps = 0) {
  const Scratch scratch;
  LineDetector model;
  auto plan = fake_plan(model, scratch / "run");
  plan.train.max_steps = max_steps;
  std::vector<std::int64_t> steps;
  CallbackList callbacks;
  callbacks.add("note", std::make_unique<NoteSteps>(steps), Every(parse_period(period)));
  Trainer(plan, std::move(callbacks)).run();
  return steps;
}

TEST(Every, TriggersOnStepsAndAfterTheLast) {
  EXPECT_THAT(triggered("4 steps"), ElementsAre(4, 8, 12, 15));
  EXPECT_THAT(triggered("5 steps"), ElementsAre(5, 10, 15));
  EXPECT_THAT(triggered("1000 steps"), ElementsAre(15));
}

TEST(Every, TriggersWhereEpochsAreCrossed) {
  EXPECT_THAT(triggered("1 epoch"), ElementsAre(5, 10, 15));
  EXPECT_THAT(triggered("2 epochs"), ElementsAre(10, 15));
  EXPECT_THAT(triggered("0.5 epochs"), ElementsAre(3, 5, 8, 10, 13, 15));
  EXPECT_THAT(triggered("1 epoch", /*max_steps=*/7), ElementsAre(5, 7));
}

TEST(Every, CountsTime) {
  EXPECT_THAT(triggered("2 hours"), ElementsAre(15));
  EXPECT_EQ(triggered("0.000000001 seconds").size(), 15U);
}

TEST(Period, ReadsItsUnits) {
  EXPECT_EQ(parse_period("10 minutes").length, 600);
  EXPECT_EQ(parse_period("1 hour").length, 3600);
  EXPECT_EQ(parse_period("0.5 epochs").unit, Period::Unit::epochs);
  EXPECT_EQ(parse_period(" 20  steps ").length, 20);
}

TEST(Period, RefusesWhatIsNone) {
  for (const auto* text : {"", "20", "steps", "-1 steps", "0 epochs", "1 week", "1 epoch 2",
                           "1.5 steps", "nan epochs", "inf hours"})
    EXPECT_THROW(parse_period(text), ConfigError) << text;
}

}  // namespace
}  // namespace millrace
