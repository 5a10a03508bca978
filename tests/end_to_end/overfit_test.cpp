// A model that cannot learn two pictures by heart cannot learn anything.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Overfit = Training;

TEST_F(Overfit, TwoImagesToABoxAndMaskApAboveNineTenths) {
  const auto output = in_folder("runs");
  const auto settings = by_heart(/*epochs=*/400);

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
