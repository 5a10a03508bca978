// Metrics that detectors record in a step.
#include <map>

#include "millrace/models/detector/metrics.h"
#include "millrace/models/layers/layers.h"
#include "millrace/models/maskrcnn/box_head.h"
#include "millrace/models/maskrcnn/rpn.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

std::map<std::string, double> values_of(const Metrics& metrics) {
  std::vector<double> numbers;
  for (const auto& number : metrics.numbers()) numbers.push_back(number.item<double>());
  const auto shares = metric_values(metrics.sums(numbers.data()));
  return {shares.begin(), shares.end()};
}

Truth two_objects() {
  return {.boxes = boxes_of({0, 0, 10, 10, 20, 20, 60, 60}), .labels = longs({0, 2})};
}

std::map<std::string, double> recall(const at::Tensor& proposals, const Truth& truth) {
  Metrics metrics;
  add_recall({proposals}, {truth}, metrics);
  return values_of(metrics);
}

TEST(ProposalRecall, CountsEachObjectByBestProposal) {
  const auto truth = two_objects();
  const std::map<std::string, double> whole = {{"rpn/recall50", 1}, {"rpn/recall70", 1}},
                                      none = {{"rpn/recall50", 0}, {"rpn/recall70", 0}},
                                      half = {{"rpn/recall50", 0.5}, {"rpn/recall70", 0}};
  EXPECT_EQ(recall(truth.boxes, truth), whole);
  // Two proposals have IoU 0.6 with the first object; none is near the second.
  EXPECT_EQ(recall(boxes_of({0, 0, 10, 6, 0, 0, 6, 10}), truth), half);
  EXPECT_EQ(recall(at::zeros({0, 4}), truth), none);
  const Truth no_objects{.boxes = at::zeros({0, 4}), .labels = longs({})};
  EXPECT_TRUE(recall(truth.boxes, no_objects).empty());
}

/// Returns the metrics of four regions for the predicted labels `said`. The true labels are 0 and
/// 2, and twice the background (3).
std::map<std::string, double> box_metrics(const std::vector<std::int64_t>& said) {
  Parameters parameters;
  const Scope root(parameters, 1);
  const BoxHead head(root / "head", root / "predictor", {}, BoxCoder{}, /*in=*/1, /*classes=*/3,
                     /*first=*/0);
  auto logits = at::zeros({4, 4});
  for (std::int64_t i = 0; i < 4; ++i) logits[i][said[static_cast<std::size_t>(i)]] = 9;
  const SampledRegions regions{
      as_rois({boxes_of({0, 0, 9, 9, 20, 20, 50, 60, 70, 70, 80, 80, 5, 50, 9, 60})}),
      longs({0, 1}),
      {.counts = {{.foreground = 2, .background = 2}},
       .rows = longs({0, 1, 2, 3}),
       .image = longs({0, 0, 0, 0}),
       .slots = longs({0, 1, 2, 3}),
       .foreground = longs({0, 1})}};
  Metrics metrics;
  head.losses({logits, at::zeros({4, 3, 4})}, regions, {two_objects()}, {.metrics = &metrics}, "");
  return values_of(metrics);
}

TEST(BoxMetrics, DistinguishMissedFromMisclassified) {
  using Values = std::map<std::string, double>;
  EXPECT_EQ(box_metrics({0, 2, 3, 3}), (Values{{"box/accuracy", 1},
                                               {"box/fg_accuracy", 1},
                                               {"box/false_negatives", 0},
                                               {"box/fg", 2},
                                               {"box/bg", 2}}));
  EXPECT_EQ(box_metrics({1, 3, 3, 0}), (Values{{"box/accuracy", 0.25},
                                               {"box/fg_accuracy", 0},
                                               {"box/false_negatives", 0.5},
                                               {"box/fg", 2},
                                               {"box/bg", 2}}));
}

}  // namespace
}  // namespace millrace::testing
