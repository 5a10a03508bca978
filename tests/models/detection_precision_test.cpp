// Detection in half precision finds objects and masks in the same images, with similar scores.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <cmath>

#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/precision.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

class DetectionPrecision : public ::testing::TestWithParam<SmallKind> {};
INSTANTIATE_TEST_SUITE_P(ByName, DetectionPrecision, ::testing::ValuesIn(small_kinds()), title_of);

TEST_P(DetectionPrecision, ReturnsSimilarScoresInBf16) {
  const auto model = small_detector(GetParam().name, GetParam().more + kEverything, "frozen_bn");
  const auto exact = model->detect(small_batch());
  model->detect_in(at::kBFloat16);
  const auto found = model->detect(small_batch());
  EXPECT_EQ(compute_type(model->parameters().begin()->value), at::kFloat) << "after detection";
  ASSERT_EQ(found.size(), exact.size());
  bool differs = false;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(found[i].empty(), exact[i].empty());
    if (found[i].empty()) continue;
    EXPECT_NEAR(found[i][0].score, exact[i][0].score, 0.05);
    differs |= found[i][0].score != exact[i][0].score;
    EXPECT_EQ(found[i][0].mask.counts.empty(), exact[i][0].mask.counts.empty());
  }
  EXPECT_TRUE(differs) << "bf16 scores equal fp32 scores";
}

}  // namespace
}  // namespace millrace::testing
