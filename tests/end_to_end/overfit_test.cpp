// A model that cannot overfit two images cannot learn anything.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Overfit = Training;

TEST_F(Overfit, ReachesHighApOnTwoImages) {
  const auto scores = scores_after("configs/maskrcnn.toml", overfitting(/*epochs=*/400));
  EXPECT_GT(ap(scores, "bbox"), 0.9);
  EXPECT_GT(ap(scores, "segm"), 0.9);
}

}  // namespace
}  // namespace millrace::testing
