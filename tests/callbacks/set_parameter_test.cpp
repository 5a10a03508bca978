#include "millrace/callbacks/set_parameter.h"

#include <gmock/gmock.h>

#include "tests/callbacks/training.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Returns the value of a hyper-parameter in each of the 15 steps.
std::vector<double> values(const std::string& name, const std::string& toml) {
  const Scratch scratch;
  std::vector<double> seen;
  Training{.folder = scratch / "run",
           .declared = {{"set_parameter", toml}},
           .before_step = [&](const TrainState& s) { seen.push_back(s.hyper.at(name)); }}();
  return seen;
}

TEST(SetParameter, AppliesValuesAtPoints) {
  EXPECT_THAT(
      values("optimizer.momentum",
             "parameter = 'optimizer.momentum'\nat = [1, 2]\nvalues = [0.5, 0.25]"),
      ElementsAre(0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25));
  const auto by_images = values("lr_factor", "at = [0, 6]\nvalues = [2, 3]\nunit = 'images'");
  EXPECT_EQ(by_images[0], 2);
  EXPECT_EQ(by_images[2], 2);
  EXPECT_EQ(by_images[3], 3);
}

TEST(SetParameter, InterpolatesBetweenPoints) {
  const auto line =
      values("lr_factor", "at = [2, 6]\nvalues = [2, 4]\nunit = 'steps'\nbetween = 'linear'");
  EXPECT_THAT(std::vector(line.begin(), line.begin() + 8), ElementsAre(1, 1, 2, 2.5, 3, 3.5, 4, 4));
}

TEST(SetParameter, AppliesValuesFromFunction) {
  const Scratch scratch;
  LineDetector model;
  std::vector<double> seen;
  CallbackList list;
  list.add("pulse",
           std::make_unique<SetParameter>("pulse", "optimizer.clip_norm", [](const TrainState& s) {
             return s.at.step % 2 == 0 ? 1.0 : 2.0;
           }));
  auto look = std::make_unique<LambdaCallback>();
  look->on_before_step = [&](const TrainState& s) {
    seen.push_back(s.hyper.at("optimizer.clip_norm"));
  };
  list.add("look", std::move(look));
  auto plan = fake_plan(model, scratch / "run");
  plan.train.max_steps = 4;
  Trainer(plan, std::move(list)).run();
  EXPECT_THAT(seen, ElementsAre(1, 2, 1, 2));
}

TEST(SetParameter, KeepsOtherChangesUntilNextPoint) {
  const Scratch scratch;
  std::vector<double> seen;
  Training{.folder = scratch / "run",
           .declared = {{"set_parameter", "at = [0, 2]\nvalues = [2, 3]"}},
           .before_step = [&](const TrainState& s) {
             if (s.at.step == 3) s.hyper.set("lr_factor", 7, "test");
             seen.push_back(s.hyper.at("lr_factor"));
           }}();
  EXPECT_EQ(seen[3], 2);
  EXPECT_EQ(seen[4], 7);
  EXPECT_EQ(seen[9], 7);
  EXPECT_EQ(seen[10], 3);
}

TEST(SetParameter, RejectsInvalidOptions) {
  const auto make = [](const std::string& toml) { return [toml] { values("lr_factor", toml); }; };
  EXPECT_THAT(make(""), ThrowsMessage<ConfigError>(HasSubstr("at requires ")));
  EXPECT_THAT(make("at = [0, 1]\nvalues = [1]"),
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("test.toml:2"), HasSubstr("`at` has 2"))));
  EXPECT_THAT(make("at = [2, 1]\nvalues = [1, 2]"),
              ThrowsMessage<ConfigError>(HasSubstr("ascending")));
  EXPECT_THAT(make("at = [-1]\nvalues = [1]"), ThrowsMessage<ConfigError>(HasSubstr("at")));
  EXPECT_THAT(make("parameter = 'lr_facto'\nat = [1]\nvalues = [1]"),
              ThrowsMessage<ConfigError>(HasSubstr("did you mean 'lr_factor'")));
  EXPECT_THAT(make("at = [1, 2]\nvalues = [1, -1]"),
              ThrowsMessage<ConfigError>(HasSubstr("lr_factor = -1 ")));
}

TEST(SetParameter, ReportsChangedValuesInMetrics) {
  const Scratch scratch;
  Training{
      .folder = scratch / "run",
      .declared = {{"log", "every = '1 steps'"}, {"set_parameter", "at = [1]\nvalues = [0.5]"}}}();
  const auto lines = metrics(scratch / "run");
  EXPECT_FALSE(lines[4].contains("lr_factor"));
  EXPECT_EQ(lines[5].at("lr_factor"), 0.5);
  EXPECT_NEAR(lines[5].at("lr").get<double>(), 0.025, 1e-12);
}

}  // namespace
}  // namespace millrace::testing
