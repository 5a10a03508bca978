// The plug-in in the trainer program: resumed runs, threads, ranks and export.
#include "tests/cli/plugin_run.h"

namespace millrace::testing {
namespace {

class RtDetrRun : public PluginRun {
 protected:
  /// Trains for two epochs of 4 steps with the published augmentations.
  fs::path train(const std::string& name, const Words& more, int steps = 8, int ranks = 1) const {
    return PluginRun::train("configs/rtdetr.toml", kRecipe, name, more, steps, ranks);
  }

  static constexpr auto kRecipe = R"(
[data]
batch_size = 2
short_side = 96
filter_empty = false
[[data.stages]]
type = "read"
[[data.stages]]
type = "decode"
[[data.stages]]
type = "photometric_distort"
[[data.stages]]
type = "zoom_out"
[[data.stages]]
type = "iou_crop"
[[data.stages]]
type = "flip"
[[data.stages]]
type = "resize_shortest_edge"
[[data.stages]]
type = "group_by_aspect_ratio"
[[data.stages]]
type = "pad"
[model.backbone]
width = 16
[model.encoder]
hidden_dim = 32
ffn_dim = 32
[model.decoder]
hidden_dim = 32
ffn_dim = 32
num_queries = 20
[model.denoising]
num_queries = 20
[train]
epochs = 2
[callbacks.log]
every = "1 steps"
[callbacks.checkpoint]
every = "1 steps"
)";
};

TEST_F(RtDetrRun, DoesNotDependOnResumeOrThreadCount) {
  const auto whole = train("whole", {});
  const auto part = train("part", {}, 3);
  train("part", {}, 6);
  train("part", {});
  expect_same(part, whole);
  expect_same(train("one", {"data.threads=1"}), train("eight", {"data.threads=8"}));
}

TEST_F(RtDetrRun, MatchesOnTwoRanksUpToRounding) {
  const auto alone = steps(train("alone", {"optimizer.lr=1e-5"}, 4));
  const auto together = steps(train("together", {"optimizer.lr=1e-5", "data.batch_size=1"}, 4, 2));
  ASSERT_EQ(alone.size(), together.size());
  for (std::size_t i = 0; i < alone.size(); ++i)
    EXPECT_NEAR(together[i].at("loss"), alone[i].at("loss"),
                0.02 * alone[i].at("loss").get<double>())
        << i;
}

TEST_F(RtDetrRun, ExportsToOnnx) {
  const auto run = train("exported", {}, 1);
  successful(
      trainer({"export", run, "--out", in_folder("rtdetr.onnx"), "--photos", data_ / "val2017"}));
  const auto model = read_text(in_folder("rtdetr.onnx"));
  for (const auto* name : {"millrace.classes", "millrace.category_ids", "GridSample"})
    EXPECT_NE(model.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace millrace::testing
