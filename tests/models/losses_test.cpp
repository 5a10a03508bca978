#include "millrace/models/layers/losses.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <stdexcept>

#include "millrace/models/layers/box_loss.h"
#include "millrace/models/ops/focal_loss.h"
#include "tests/models/gradients.h"
#include "tests/models/random_boxes.h"
#include "tests/models/threads.h"

namespace millrace {
namespace {

using testing::close;
using testing::expect_gradient;
using testing::random_boxes;
using testing::random_values;

at::Tensor box(std::vector<double> corners) {
  return at::tensor(corners, at::kDouble).view({-1, 4});
}

TEST(GiouLoss, IsZeroForTheSameBoxAndBetweenOneAndTwoForOnesApart) {
  const auto unit = box({0, 0, 1, 1});
  EXPECT_NEAR(giou_loss_sum(unit, unit).item<double>(), 0, 1e-6);
  // Apart: IoU 0, a hull of 3 x 1 of which two thirds are covered.
  EXPECT_NEAR(giou_loss_sum(unit, box({2, 0, 3, 1})).item<double>(), 1 + 1.0 / 3, 1e-6);
  // One quarter of each in common: IoU 1/7, hull 9/4 of which 7/9 are covered.
  EXPECT_NEAR(giou_loss_sum(unit, box({0.5, 0.5, 1.5, 1.5})).item<double>(), 1 - 1.0 / 7 + 2.0 / 9,
              1e-6);
}

TEST(GiouLoss, HasTheGradientThatDifferencesSay) {
  const auto boxes = random_boxes(20, 30, 25, 1).to(at::kDouble),
             targets = random_boxes(20, 30, 25, 3).to(at::kDouble);
  expect_gradient([&](const at::Tensor& x) { return giou_loss_sum(x, targets); }, boxes);
}

TEST(BoxLoss, OfPerfectDeltasIsZeroInEveryKind) {
  const auto references = random_boxes(30, 300, 60, 1), boxes = random_boxes(30, 300, 60, 3);
  const BoxCoder coder{.weights = {10, 10, 5, 5}};
  for (const auto& loss : {BoxLoss{}, BoxLoss{.beta = 0.1}, BoxLoss{.kind = "giou"}})
    EXPECT_NEAR(
        loss.sum(coder, references, coder.encode(references, boxes), boxes).item<double>() / 30, 0,
        1e-4)
        << loss.kind;
}

TEST(BoxLoss, HasTheGradientThatDifferencesSayThroughTheDecoding) {
  const auto references = random_boxes(10, 30, 25, 1).to(at::kDouble),
             boxes = random_boxes(10, 30, 25, 3).to(at::kDouble);
  const auto deltas = random_values({10, 4}, -1, 1, 5).to(at::kDouble);
  for (const auto& loss : {BoxLoss{.beta = 0.5}, BoxLoss{.kind = "giou"}})
    expect_gradient([&](const at::Tensor& x) { return loss.sum(BoxCoder{}, references, x, boxes); },
                    deltas);
}

/// The definition, with a tensor of targets.
at::Tensor focal_by_definition(const at::Tensor& logits, const at::Tensor& classes,
                               const FocalOptions& options) {
  auto target = at::zeros_like(logits);
  for (std::int64_t row = 0; row < classes.size(0); ++row)
    if (const auto own = classes[row].item<std::int64_t>(); own >= 0) target[row][own].fill_(1);
  const auto p = at::sigmoid(logits);
  const auto right = p * target + (1 - p) * (1 - target);
  const auto weight = options.alpha * target + (1 - options.alpha) * (1 - target);
  const auto loss = -weight * (1 - right).pow(options.gamma) * right.log();
  return loss.index_select(0, (classes != kIgnored).nonzero().squeeze(1)).sum();
}

at::Tensor some_classes() { return at::tensor({2, -1, 0, -2, 1, -1, -1, 2}, at::kLong); }

TEST(FocalLoss, IsItsDefinition) {
  const auto logits = random_values({8, 3}, -6, 6, 1).to(at::kDouble);
  for (const auto& options : {FocalOptions{}, FocalOptions{0.6, 0}, FocalOptions{0.1, 1.5}})
    EXPECT_TRUE(close(focal_loss_sum(logits, some_classes(), options),
                      focal_by_definition(logits, some_classes(), options), 1e-12));
}

TEST(FocalLoss, HasTheGradientThatDifferencesSay) {
  const auto logits = random_values({8, 3}, -4, 4, 1).to(at::kDouble);
  for (const auto& options : {FocalOptions{}, FocalOptions{0.6, 1}, FocalOptions{0.1, 3.5}})
    expect_gradient([&](const at::Tensor& x) { return focal_loss_sum(x, some_classes(), options); },
                    logits);
}

TEST(FocalLoss, StaysFiniteForLogitsOfAnySize) {
  const auto logits = at::tensor({-1e4F, 1e4F, 1e4F, -1e4F}).view({2, 2}).requires_grad_();
  const auto loss = focal_loss_sum(logits, at::tensor({0, 0}, at::kLong), {});
  EXPECT_NEAR(loss.item<double>(), 0.25 * 1e4 + 0.75 * 1e4, 1);
  loss.backward();
  EXPECT_TRUE(logits.grad().isfinite().all().item<bool>());
}

TEST(FocalLoss, IsTheSameOnAnyNumberOfThreads) {
  const auto classes = random_values({5000}, -2, 7, 3).floor().to(at::kLong);
  testing::expect_same_on_any_threads([&] {
    const auto logits = random_values({5000, 7}, -6, 6, 1).requires_grad_();
    const auto loss = focal_loss_sum(logits, classes, {});
    loss.backward();
    return std::vector{loss.detach(), logits.grad()};
  });
}

TEST(FocalLoss, RefusesOtherShapes) {
  EXPECT_THROW(focal_loss_sum(at::zeros({3, 2}), at::zeros({4}, at::kLong), {}),
               std::invalid_argument);
  EXPECT_THROW(focal_loss_sum(at::zeros({3, 2}), at::zeros({3}), {}), std::invalid_argument);
}

}  // namespace
}  // namespace millrace
