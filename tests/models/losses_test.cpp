#include "millrace/models/layers/losses.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/zeros_like.h>

#include <stdexcept>

#include "millrace/models/ops/focal_loss.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

at::Tensor doubles(at::IntArrayRef shape, double low, double high, std::uint64_t seed) {
  return random_values(shape, low, high, seed).to(at::kDouble);
}

at::Tensor some_classes() { return longs({2, -1, 0, -2, 1, -1, -1, 2}); }

TEST(Losses, MatchNumericalGradients) {
  const auto target = doubles({40}, -1, 1, 1), shares = doubles({40}, 0, 1, 1);
  for (const double beta : {0.0, 1.0 / 9, 1.0})
    expect_gradient([&](const auto& x) { return smooth_l1_sum(x, target, beta); },
                    doubles({40}, -1, 1, 2));
  expect_gradient([&](const auto& x) { return binary_cross_entropy_sum(x, shares); },
                  doubles({40}, -6, 6, 2));
  const auto references = random_boxes(20, 30, 25, 1).to(at::kDouble),
             boxes = random_boxes(20, 30, 25, 3).to(at::kDouble);
  const auto weights = doubles({20}, 0, 1, 7);
  expect_gradient([&](const auto& x) { return giou_loss_sum(x, boxes); }, references);
  expect_gradient([&](const auto& x) { return giou_loss_sum(x, boxes, weights); }, references);
  for (const auto& loss :
       {BoxLoss{.smooth_l1_beta = 0.5}, BoxLoss{.bbox_reg_loss_type = BoxLossType::giou}})
    expect_gradient([&](const auto& x) { return loss.sum(BoxCoder{}, references, x, boxes); },
                    doubles({20, 4}, -1, 1, 5));
  for (const auto& options : {FocalOptions{}, FocalOptions{0.6, 1}, FocalOptions{0.1, 3.5}})
    expect_gradient([&](const auto& x) { return focal_loss_sum(x, some_classes(), options); },
                    doubles({8, 3}, -4, 4, 1));
}

TEST(GiouLoss, ReturnsValuesFromZeroToTwo) {
  const auto loss = [](const at::Tensor& box) {
    return giou_loss_sum(boxes_of({0, 0, 1, 1}), box).item<double>();
  };
  EXPECT_NEAR(loss(boxes_of({0, 0, 1, 1})), 0, 1e-6);
  // Disjoint: IoU 0, and the boxes cover two thirds of the 3 x 1 hull.
  EXPECT_NEAR(loss(boxes_of({2, 0, 3, 1})), 1 + 1.0 / 3, 1e-6);
  // They overlap by a quarter of each box: IoU 1/7. Their union covers 7/9 of the hull, of area
  // 9/4.
  EXPECT_NEAR(loss(boxes_of({0.5, 0.5, 1.5, 1.5})), 1 - 1.0 / 7 + 2.0 / 9, 1e-6);
}

TEST(GiouLoss, AppliesBoxWeights) {
  const auto boxes = random_boxes(3, 30, 25, 1), targets = random_boxes(3, 30, 25, 3);
  const auto weights = at::tensor({0.0F, 1.0F, 2.5F});
  const auto alone = [&](std::int64_t i) {
    return giou_loss_sum(boxes.narrow(0, i, 1), targets.narrow(0, i, 1)).item<double>();
  };
  EXPECT_NEAR(giou_loss_sum(boxes, targets, weights).item<double>(), alone(1) + 2.5 * alone(2),
              1e-5);
}

TEST(BoxLoss, IsZeroForPerfectDeltas) {
  const auto references = random_boxes(30, 300, 60, 1), boxes = random_boxes(30, 300, 60, 3);
  const BoxCoder coder{.weights = {10, 10, 5, 5}};
  for (const auto& loss : {BoxLoss{}, BoxLoss{.smooth_l1_beta = 0.1},
                           BoxLoss{.bbox_reg_loss_type = BoxLossType::giou}})
    EXPECT_NEAR(
        loss.sum(coder, references, coder.encode(references, boxes), boxes).item<double>() / 30, 0,
        1e-4)
        << value_name(loss.bbox_reg_loss_type);
}

/// Computes the focal loss by its definition, with one-hot targets.
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

TEST(FocalLoss, MatchesDefinition) {
  const auto logits = doubles({8, 3}, -6, 6, 1);
  for (const auto& options : {FocalOptions{}, FocalOptions{0.6, 0}, FocalOptions{0.1, 1.5}})
    EXPECT_TRUE(tensors_close(focal_loss_sum(logits, some_classes(), options),
                              focal_by_definition(logits, some_classes(), options), 1e-12));
}

TEST(FocalLoss, MatchesDefinitionInFloat) {
  const auto classes = random_values({500}, -3, 91, 3).floor().to(at::kLong);
  const auto logits = random_values({500, 91}, -20, 20, 1).to(at::kFloat).requires_grad_(),
             exact = logits.detach().to(at::kDouble).requires_grad_();
  const auto loss = focal_loss_sum(logits, classes, {}),
             exact_loss = focal_loss_sum(exact, classes, {});
  EXPECT_NEAR(loss.item<double>() / exact_loss.item<double>(), 1, 1e-6);
  loss.backward();
  exact_loss.backward();
  const auto difference = (logits.grad().to(at::kDouble) - exact.grad()).abs();
  EXPECT_TRUE((difference <= 2e-6 * exact.grad().abs()).all().item<bool>());
}

TEST(FocalLoss, ReturnsNaNForNaN) {
  for (const std::int64_t own : {0, 1}) {
    const auto logits = at::tensor({NAN, 1.0F}).view({1, 2}).requires_grad_();
    const auto loss = focal_loss_sum(logits, longs({own}), {});
    EXPECT_TRUE(std::isnan(loss.item<double>()));
    loss.backward();
    EXPECT_TRUE(logits.grad().isnan().any().item<bool>());
  }
}

TEST(FocalLoss, IsFiniteForLargeLogits) {
  const auto logits = at::tensor({-1e4F, 1e4F, 1e4F, -1e4F}).view({2, 2}).requires_grad_();
  const auto loss = focal_loss_sum(logits, longs({0, 0}), {});
  EXPECT_NEAR(loss.item<double>(), 0.25 * 1e4 + 0.75 * 1e4, 1);
  loss.backward();
  EXPECT_TRUE(logits.grad().isfinite().all().item<bool>());
}

TEST(FocalLoss, DoesNotDependOnThreadCount) {
  const auto classes = random_values({5000}, -2, 7, 3).floor().to(at::kLong);
  expect_same_on_any_threads([&] {
    const auto logits = random_values({5000, 7}, -6, 6, 1).requires_grad_();
    const auto loss = focal_loss_sum(logits, classes, {});
    loss.backward();
    return std::vector{loss.detach(), logits.grad()};
  });
}

TEST(FocalLoss, RejectsShapeMismatch) {
  EXPECT_THROW(focal_loss_sum(at::zeros({3, 2}), longs({0, 0, 0, 0}), {}), std::invalid_argument);
  EXPECT_THROW(focal_loss_sum(at::zeros({3, 2}), at::zeros({3}), {}), std::invalid_argument);
}

}  // namespace
}  // namespace millrace::testing
