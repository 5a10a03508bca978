// Compares the metrics of Megvii's YOLOX-nano in the trainer program with those of the package
// `yolox` 0.3.0 on the same photos (README.md of the test data).
#include "tests/cli/trainer.h"
#include "tests/support/data.h"

namespace millrace::testing {
namespace {

class PublishedYolox : public Trainer {
 protected:
  /// Returns COCO's twelve metrics.
  std::vector<double> figures(const Words& settings) const {
    const auto result =
        successful(trainer(with_settings({"eval", "configs/coco/yolox_nano.toml", "--weights",
                                          data_folder() / "weights" / "yolox_nano_coco.safetensors",
                                          "--data", data_folder() / "coco_mini", "--json"},
                                         settings)));
    return result.json().at("bbox").at("stats");
  }

  static void expect_near(const std::vector<double>& ours, const std::vector<double>& published) {
    ASSERT_LE(published.size(), ours.size());
    for (std::size_t i = 0; i < published.size(); ++i) EXPECT_NEAR(ours[i], published[i], 5e-4);
  }
};

TEST_F(PublishedYolox, MatchesPublishedMetrics) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights/yolox_nano_coco.safetensors");
  expect_near(figures({}), {0.3272, 0.5052, 0.3441, 0.0716, 0.2516, 0.6619, 0.2818, 0.3873, 0.3993,
                            0.1165, 0.3699, 0.7124});
}

TEST_F(PublishedYolox, ScoresHigherWithExactBoxes) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights/yolox_nano_coco.safetensors");
  EXPECT_GT(figures({"model.test.boxes='exact'"})[0], 0.3272 + 0.003);
}

}  // namespace
}  // namespace millrace::testing
