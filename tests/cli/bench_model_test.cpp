// trainer bench model: its metrics, and a profile that accounts for the whole step.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using BenchModel = Trainer;

TEST_F(BenchModel, ReportsTimeByOperatorKind) {
  const auto data = make_data();
  for (const bool inference : {false, true}) {
    const Words command = {"bench", "model", "--steps", "2", "--json"};
    const auto json =
        successful(trainer(on(data, command + (inference ? Words{"--inference"} : Words{}))))
            .json();
    for (const char* key : {"step_s", "cpu_s", "images_per_s", "peak_rss_bytes"})
      EXPECT_GT(json.at(key).get<double>(), 0) << key;
    EXPECT_EQ(json.at("steps_s").size(), 2U);
    EXPECT_TRUE(json.at("first").contains(inference ? "detections" : "loss_objectness"));
    double shares = 0;
    Words kinds;
    for (const auto& kind : json.at("profile")) {
      shares += kind.at("share").get<double>();
      kinds.push_back(kind.at("name"));
    }
    EXPECT_NEAR(shares, 1, 1e-6);
    EXPECT_THAT(kinds, ::testing::IsSupersetOf({"convolution", "matrix product", "ROIAlign",
                                                "proposals, NMS", "outside operators"}));
  }
}

TEST_F(BenchModel, CountsOperatorWork) {
  const auto data = make_data();
  const Words command = {"bench", "model", "--steps", "1", "--work"};
  const auto json = successful(trainer(on(data, command + Words{"--json"}))).json();
  double flops = 0;
  for (const auto& one : json.at("operators")) {
    EXPECT_GE(one.at("bytes").get<double>(), 0) << one.at("name");
    flops += one.at("flops").get<double>();
  }
  EXPECT_GT(flops, 1e6);
  EXPECT_THAT(successful(trainer(on(data, command))).out, ::testing::HasSubstr("GFLOP/s"));
}

}  // namespace
}  // namespace millrace::testing
