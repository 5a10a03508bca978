#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/callbacks/series.h"
#include "tests/callbacks/training.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

MILLRACE_REGISTER(register_callback<PublishSeries>("series", "publishes given numbers"));

/// The factor of the learning rate after each value.
std::vector<double> factors(const std::string& values, const std::string& toml) {
  const Scratch scratch;
  std::vector<double> seen;
  Training{.folder = scratch / "run",
           .declared = {{"series", "values = " + values},
                        {"reduce_on_plateau", "metric = 'score'\n" + toml}},
           .before_step =
               [&](TrainState& s) {
                 if (s.at.step > 0) seen.push_back(s.hyper.at("lr_factor"));
               },
           .adjust = [](TrainPlan& plan) { plan.train.epochs = 5; }}();
  return seen;
}

TEST(ReduceOnPlateau, DoesWhatTorchDoes) {
  // torch 2.11: ReduceLROnPlateau(SGD(lr=1), mode="max", factor=0.5, patience=1, threshold=0.004,
  // threshold_mode="abs", cooldown=2, min_lr=0.2, eps=0).
  const auto seen = factors(
      "[0.1, 0.12, 0.12, 0.125, 0.11, 0.13, 0.13, 0.13, 0.129, 0.131, 0.14, 0.14, 0.14, 0.14, "
      "0.14, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]",
      "factor = 0.5\npatience = 1\nmin_delta = 0.004\ncooldown = 2\nmin = 0.2");
  EXPECT_THAT(std::vector(seen.begin(), seen.begin() + 22),
              ElementsAre(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25,
                          0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2));
}

TEST(ReduceOnPlateau, CountsWhatIsNoNumberAsNoBetter) {
  EXPECT_THAT(factors("[1, 999, 0.9, 0.8]", "better = 'lower'\npatience = 0").at(1),
              ::testing::DoubleEq(0.1));
}

TEST(ReduceOnPlateau, TakesTheStateOfOlderCheckpoints) {
  LineDetector model;
  TrainState state(model, {});
  const auto callback =
      callbacks().at("reduce_on_plateau").create(parse_config("metric = 'score'", "test.toml"));
  auto& saver = dynamic_cast<SavesState&>(*callback);
  const nlohmann::json stall = {{"bad", 2}, {"best", 0.5}, {"best_step", 4}};
  saver.load_state(state, {{"stall", stall.dump()}, {"cooldown", 1}});
  EXPECT_EQ(saver.save_state(), (nlohmann::json{{"stall", stall}, {"cooldown", 1}}));
}

TEST(ReduceOnPlateau, RefusesAParameterThatThereIsNot) {
  EXPECT_THAT([] { factors("[1]", "parameter = 'lr'"); },
              ThrowsMessage<ConfigError>(HasSubstr("parameter = \"lr\" is not one of lr_factor")));
}

}  // namespace
}  // namespace millrace::testing
