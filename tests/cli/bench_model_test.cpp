// trainer bench model: its figures, and that its profile accounts for the whole step.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using BenchModel = Trainer;

void expect_figures(const Json& json) {
  for (const char* key : {"step_s", "cpu_s", "images_per_s", "peak_rss_bytes"})
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  EXPECT_EQ(json.at("steps_s").size(), 2U);
  double shares = 0;
  std::vector<std::string> kinds;
  for (const auto& kind : json.at("profile")) {
    shares += kind.at("share").get<double>();
    kinds.push_back(kind.at("name"));
  }
  EXPECT_NEAR(shares, 1, 1e-6);
  EXPECT_THAT(kinds, ::testing::IsSupersetOf({"convolution", "matrix product", "ROIAlign",
                                              "proposals, NMS", "outside operators"}));
}

TEST_F(BenchModel, TellsWhereTheTimeOfATrainingStepGoes) {
  auto arguments = on(make_data(), {"bench", "model"});
  arguments.insert(arguments.end(), {"--steps", "2", "--json"});
  const auto result = trainer(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_figures(result.json());
  EXPECT_TRUE(result.json().at("first").contains("loss_objectness"));
}

TEST_F(BenchModel, TellsTheSameOfADetection) {
  auto arguments = on(make_data(), {"bench", "model"});
  arguments.insert(arguments.end(), {"--inference", "--steps", "2", "--json"});
  const auto result = trainer(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_figures(result.json());
}

}  // namespace
}  // namespace millrace::testing
