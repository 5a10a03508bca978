// bf16 overfits two images like fp32. Takes minutes if the processor emulates bf16, so it is
// labelled slow.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Precision = Training;

TEST_F(Precision, Bf16LearnsLikeFp32) {
  const auto scores = [&](const std::string& precision) {
    return scores_after("configs/maskrcnn.toml",
                        overfitting(/*epochs=*/400) + Words{"train.precision=" + precision});
  };
  const auto fp32 = scores("fp32"), bf16 = scores("bf16");
  EXPECT_GT(ap(fp32, "bbox"), 0.9);
  for (const auto* iou : {"bbox", "segm"}) EXPECT_NEAR(ap(bf16, iou), ap(fp32, iou), 0.1) << iou;
}

}  // namespace
}  // namespace millrace::testing
