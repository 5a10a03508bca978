// A model that cannot learn two pictures by heart cannot learn anything.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Overfit = Training;

TEST_F(Overfit, TwoImagesToABoxAndMaskApAboveNineTenths) {
  const auto data = in_folder("data"), output = in_folder("runs");
  ASSERT_EQ(trainer({"sample", "--out", data.string(), "--train", "2", "--val", "1"}).exit_code, 0);
  const std::vector<std::string> settings = {"data.root=\"" + data.string() + "\"",
                                             "data.val=\"train2017\"",
                                             "data.batch_size=2",
                                             "data.flip=0.0",
                                             "data.aspect_grouping=false",
                                             "data.test_short_side=0",  // as trained
                                             "data.test_max_side=0",
                                             "train.epochs=250",
                                             "schedule.warmup_steps=20",
                                             "schedule.warmup_epochs=0.0",
                                             "callbacks.evaluate.every=\"250 epochs\"",
                                             "callbacks.checkpoint.every=\"250 epochs\""};

  const auto run = trainer(
      with_settings({"run", "configs/maskrcnn.toml", "--output", output.string()}, settings));

  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto [box, mask] = training_ap(with_settings({"eval", "configs/maskrcnn.toml"}, settings),
                                       last_checkpoint(output));
  EXPECT_GT(box, 0.9) << run.err;
  EXPECT_GT(mask, 0.9) << run.err;
}

}  // namespace
}  // namespace millrace::testing
