// The plug-in in the trainer program: last epochs without augmentation, resumed runs, threads,
// ranks and export.
#include "tests/cli/plugin_run.h"

namespace millrace::testing {
namespace {

class YoloxRun : public PluginRun {
 protected:
  /// Trains with mosaic and mixup in the first of two epochs of 4 steps, and with the L1 loss in
  /// the second.
  fs::path train(const std::string& name, const Words& more, int steps = 8, int ranks = 1) const {
    return PluginRun::train("configs/yolox.toml", kRecipe, name, more, steps, ranks);
  }

  static constexpr auto kRecipe = R"(
[data]
batch_size = 2
filter_empty = false
[[data.stages]]
type = "read"
[[data.stages]]
type = "decode"
[[data.stages]]
type = "mosaic"
until = 1
width = 96
height = 96
[[data.stages]]
type = "affine"
until = 1
rotation = 10
min_scale = 0.5
max_scale = 1.5
width = 96
height = 96
[[data.stages]]
type = "mixup"
until = 1
[[data.stages]]
type = "hsv_shift"
[[data.stages]]
type = "flip"
[[data.stages]]
type = "resize_shortest_edge"
short_side = 96
max_side = 96
[[data.stages]]
type = "group_by_aspect_ratio"
[[data.stages]]
type = "pad"
shapes = ["96x96"]
[model]
width = 0.125
random_size = [2, 4]
l1_from = 1
[train]
epochs = 2
[schedule]
warmup = "0.5 epochs"
end_epochs = 1
[callbacks.log]
every = "1 steps"
[callbacks.checkpoint]
every = "1 steps"
)";
};

TEST_F(YoloxRun, DoesNotDependOnResumeOrThreadCount) {
  const auto whole = train("whole", {});
  const auto part = train("part", {}, 3);
  train("part", {}, 6);
  train("part", {});
  expect_same(part, whole);
  expect_same(train("one", {"data.threads=1"}), train("eight", {"data.threads=8"}));
  const auto all = steps(whole);
  ASSERT_EQ(all.size(), 8U);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].at("loss_l1").get<double>() > 0, i >= 4) << i;
}

TEST_F(YoloxRun, MatchesOnTwoRanksUpToRounding) {
  const auto alone = steps(train("alone", {"optimizer.lr=1e-5"}, 4));
  const auto together = steps(train("together", {"optimizer.lr=1e-5", "data.batch_size=1"}, 4, 2));
  ASSERT_EQ(alone.size(), together.size());
  for (std::size_t i = 0; i < alone.size(); ++i)
    EXPECT_NEAR(together[i].at("loss"), alone[i].at("loss"),
                0.02 * alone[i].at("loss").get<double>())
        << i;
}

TEST_F(YoloxRun, ReportsMissingPlugin) {
  write_text(in_folder("forgotten.toml"), "[model]\ntype = 'yolox'\n");
  expect_error(trainer({"config", in_folder("forgotten.toml")}), 2, "plugins = [\"yolox.so\"]");
}

TEST_F(YoloxRun, EvaluatesWithoutNamingPlugin) {
  const auto run = train("alone", {}, 1);
  successful(trainer({"eval", run, "--data", data_}));
}

TEST_F(YoloxRun, ExportsToOnnx) {
  const auto run = train("exported", {}, 1);
  successful(trainer({"export", run, "--out", in_folder("yolox.onnx"), "--set",
                      "plugins=['yolox.so']", "--photos", data_ / "val2017"}));
  EXPECT_TRUE(fs::exists(in_folder("yolox.onnx")));
}

}  // namespace
}  // namespace millrace::testing
