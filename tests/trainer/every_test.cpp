#include "millrace/trainer/every.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "millrace/base/errors.h"
#include "tests/support/fake_training.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct NoteSteps final : Callback {
  std::vector<std::int64_t>& steps;
  explicit NoteSteps(std::vector<std::int64_t>& into) : steps(into) {}
  void trigger(const TrainState& state) override { steps.push_back(state.at.step); }
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

TEST(Every, TriggersOnStepsAndAtEnd) {
  EXPECT_THAT(triggered("4 steps"), ElementsAre(4, 8, 12, 15));
  EXPECT_THAT(triggered("5 steps"), ElementsAre(5, 10, 15));
  EXPECT_THAT(triggered("1000 steps"), ElementsAre(15));
}

TEST(Every, TriggersAtEpochs) {
  EXPECT_THAT(triggered("1 epoch"), ElementsAre(5, 10, 15));
  EXPECT_THAT(triggered("2 epochs"), ElementsAre(10, 15));
  EXPECT_THAT(triggered("0.5 epochs"), ElementsAre(3, 5, 8, 10, 13, 15));
  EXPECT_THAT(triggered("1 epoch", /*max_steps=*/7), ElementsAre(5, 7));
}

TEST(Every, CountsTime) {
  EXPECT_THAT(triggered("2 hours"), ElementsAre(15));
  EXPECT_EQ(triggered("0.000000001 seconds").size(), 15U);
}

TEST(Period, ParsesUnits) {
  EXPECT_EQ(parse_period("10 minutes").length, 600);
  EXPECT_EQ(parse_period("1 hour").length, 3600);
  EXPECT_EQ(parse_period("0.5 epochs").unit, Period::Unit::epochs);
  EXPECT_EQ(parse_period(" 20  steps ").length, 20);
}

TEST(Period, RejectsInvalidString) {
  for (const auto* text : {"", "20", "steps", "-1 steps", "0 epochs", "1 week", "1 epoch 2",
                           "1.5 steps", "nan epochs", "inf hours"})
    EXPECT_THROW(parse_period(text), ConfigError) << text;
}

TEST(Condition, ComparesKnownMetrics) {
  LineDetector model;
  TrainState state(model, {});
  state.at.step = 7;
  state.at.progress = 1.4;
  state.at.images = 14;
  state.scalars = {{"loss", 0.5}, {"lr", 0.01}};
  state.latest = {{"bbox/AP", 0.3}, {"val/loss", std::nan("")}};
  for (const auto* yes : {"step >= 7", "epoch > 1.3", "images == 14", "lr < 0.1", "loss <= 0.5",
                          "bbox/AP != 0.2", "bbox/AP == 0.3", " epoch  < 1e1 "})
    EXPECT_TRUE(Condition(yes).holds(state)) << yes;
  for (const auto* no : {"step > 7", "epoch >= 1.5", "bbox/AP > 0.3", "segm/AP >= 0",
                         "segm/AP != 1", "val/loss < 9", "val/loss != 9"})
    EXPECT_FALSE(Condition(no).holds(state)) << no;
}

TEST(Condition, RejectsInvalidString) {
  for (const auto* text :
       {"", "epoch", "epoch >=", "epoch 8", ">= 8", "epoch => 8", "epoch >= eight", "epoch >= 8x",
        "epoch >= nan", "epoch >= inf", "epoch >= 8 and step > 3", "epoch>=8"})
    EXPECT_THAT([&] { Condition(text, "callbacks.x.only_if"); },
                ThrowsMessage<ConfigError>(
                    HasSubstr("callbacks.x.only_if: \"" + std::string(text) + "\"")));
}

}  // namespace
}  // namespace millrace::testing
