// Every detector learns two pictures by heart: what does not cannot learn anything. Mask R-CNN has
// its own test.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

class EveryConfig : public Training, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(ByName, EveryConfig,
                         ::testing::Values("fasterrcnn", "cascadercnn", "retinanet"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(EveryConfig, LearnsTwoImagesByHeart) {
  const auto data = in_folder("data"), output = in_folder("runs");
  ASSERT_EQ(trainer({"sample", "--out", data.string(), "--train", "2", "--val", "1"}).exit_code, 0);
  const std::string config = std::string("configs/") + GetParam() + ".toml";
  const std::vector<std::string> settings = {"data.root=\"" + data.string() + "\"",
                                             "data.val=\"train2017\"",
                                             "data.batch_size=2",
                                             "data.flip=0.0",
                                             "data.aspect_grouping=false",
                                             "data.test_short_side=0",  // as trained
                                             "data.test_max_side=0",
                                             "train.epochs=150",
                                             "schedule.warmup_steps=20",
                                             "schedule.warmup_epochs=0.0",
                                             "callbacks.pictures.enabled=false",
                                             "callbacks.evaluate.every=\"150 epochs\"",
                                             "callbacks.checkpoint.every=\"150 epochs\""};

  const auto run = trainer(with_settings({"run", config, "--output", output.string()}, settings));

  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto scores =
      training_scores(with_settings({"eval", config}, settings), last_checkpoint(output));
  EXPECT_GT(scores["bbox"]["stats"][0].get<double>(), 0.5) << run.err;
  EXPECT_EQ(scores.contains("segm"), GetParam() == std::string("cascadercnn"));
}

}  // namespace
}  // namespace millrace::testing
