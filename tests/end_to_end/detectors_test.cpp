// Every detector must overfit two images; otherwise it cannot learn anything. Mask R-CNN is tested
// in overfit_test.cpp.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

class EveryConfig : public Training, public ::testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(ByName, EveryConfig,
                         ::testing::Values("fasterrcnn", "cascadercnn", "retinanet"),
                         [](const auto& one) { return one.param; });

TEST_P(EveryConfig, OverfitsTwoImages) {
  const auto scores =
      scores_after("configs/" + GetParam() + ".toml",
                   overfitting(/*epochs=*/150) + Words{"callbacks.pictures.enabled=false"});
  EXPECT_GT(ap(scores, "bbox"), 0.5);
  EXPECT_EQ(scores.contains("segm"), GetParam() == "cascadercnn");
}

}  // namespace
}  // namespace millrace::testing
