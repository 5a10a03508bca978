// What detectors say of a step: laws of their figures.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>

#include "millrace/models/layers/layers.h"
#include "millrace/models/maskrcnn/box_head.h"
#include "millrace/models/maskrcnn/rpn.h"
#include "millrace/trainer/detector/figures.h"

namespace millrace {
namespace {

std::map<std::string, double> values_of(const Figures& figures) {
  std::vector<double> numbers;
  for (const auto& number : figures.numbers()) numbers.push_back(number.item<double>());
  const auto shares = quotients(figures.sums(numbers.data()));
  return {shares.begin(), shares.end()};
}

Truth two_objects() {
  return {.boxes = at::tensor({0, 0, 10, 10, 20, 20, 60, 60}, at::kFloat).view({2, 4}),
          .labels = at::tensor({0, 2}, at::kLong)};
}

std::map<std::string, double> recall(const at::Tensor& proposals) {
  Figures figures;
  tell_recall({proposals}, {two_objects()}, figures);
  return values_of(figures);
}

TEST(RecallOfProposals, IsWholeWhereTheyHoldTheTruth) {
  const auto found = recall(two_objects().boxes);
  EXPECT_EQ(found.at("rpn/recall50"), 1);
  EXPECT_EQ(found.at("rpn/recall70"), 1);
}

TEST(RecallOfProposals, CountsObjectsOnceByTheirBestProposal) {
  // IoU 0.6 twice with the first object, nothing near the second.
  const auto close = recall(at::tensor({0, 0, 10, 6, 0, 0, 6, 10}, at::kFloat).view({2, 4}));
  EXPECT_EQ(close.at("rpn/recall50"), 0.5);
  EXPECT_EQ(close.at("rpn/recall70"), 0);
}

TEST(RecallOfProposals, IsNothingOfNoneAndLeftOutWithoutObjects) {
  EXPECT_EQ(recall(at::zeros({0, 4})).at("rpn/recall50"), 0);
  Figures figures;
  tell_recall({two_objects().boxes},
              {{.boxes = at::zeros({0, 4}), .labels = at::zeros({0}, at::kLong)}}, figures);
  EXPECT_TRUE(values_of(figures).empty());
}

/// Two foreground regions, of labels 0 and 2, and two of the background (3) for which the head says
/// `said`.
std::map<std::string, double> box_figures(const std::vector<std::int64_t>& said) {
  Parameters parameters;
  const Scope root(parameters, 1);
  const BoxHead head(root / "head", root / "predictor", {}, BoxCoder{}, /*in=*/1, /*classes=*/3,
                     /*first=*/0);
  auto logits = at::zeros({4, 4});
  for (std::int64_t i = 0; i < 4; ++i) logits[i][said[static_cast<std::size_t>(i)]] = 9;
  const auto truth = two_objects();
  const std::vector<SampledRegions> regions = {
      {at::tensor({0, 0, 9, 9, 20, 20, 50, 60, 70, 70, 80, 80, 5, 50, 9, 60}, at::kFloat)
           .view({4, 4}),
       at::arange(2), 2}};
  Figures figures;
  head.loss({logits, at::zeros({4, 3, 4})}, regions, {truth}, {.figures = &figures}, "");
  return values_of(figures);
}

TEST(BoxFigures, OfAPerfectHeadAreWhole) {
  const auto figures = box_figures({0, 2, 3, 3});
  EXPECT_EQ(figures.at("box/accuracy"), 1);
  EXPECT_EQ(figures.at("box/fg_accuracy"), 1);
  EXPECT_EQ(figures.at("box/false_negatives"), 0);
  EXPECT_EQ(figures.at("box/fg"), 2);
  EXPECT_EQ(figures.at("box/bg"), 2);
}

TEST(BoxFigures, TellWhatIsMissedFromWhatIsMistaken) {
  const auto figures = box_figures({1, 3, 3, 0});
  EXPECT_EQ(figures.at("box/accuracy"), 0.25);
  EXPECT_EQ(figures.at("box/fg_accuracy"), 0);
  EXPECT_EQ(figures.at("box/false_negatives"), 0.5);
}

}  // namespace
}  // namespace millrace
