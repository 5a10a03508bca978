// The RPN's losses, computed only for the sampled anchors, equal the losses computed on whole maps.
#include "millrace/models/maskrcnn/rpn.h"
#include "millrace/models/detector/loss_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

constexpr std::int64_t kChannels = 16, kImages = 2;

class RpnLosses : public ::testing::Test {
 protected:
  RpnLosses() {
    // Small maps, so that the 3 x 3 kernel extends beyond an edge for most anchors.
    for (const auto& [height, width] : {std::pair{9L, 14L}, {5L, 7L}, {3L, 4L}, {2L, 2L}, {1L, 1L}})
      features_.maps.push_back(at::randn({kImages, kChannels, height, width})
                                   .contiguous(at::MemoryFormat::ChannelsLast)
                                   .requires_grad_());
    features_.padded = {36, 56};
    features_.sizes = {{36, 56}, {30, 50}};
    for (const auto& image : {0, 1})
      truths_.push_back(
          {at::tensor({4.F + image, 5.F, 20.F, 25.F}).view({1, 4}), at::zeros({1}, at::kLong)});
  }

  at::Tensor value(std::string_view name) const {
    for (const auto& parameter : parameters_)
      if (parameter.name == name) return parameter.value;
    throw std::out_of_range(std::string(name));
  }
  at::Tensor convolved(const at::Tensor& x, const std::string& name, std::int64_t padding) const {
    return at::conv2d(x, value("rpn.head." + name + ".weight"), value("rpn.head." + name + ".bias"),
                      1, padding);
  }

  /// Returns the outputs of a head on the whole maps, [N, T, values].
  at::Tensor dense(const std::string& name, std::int64_t values) const {
    std::vector<at::Tensor> levels;
    for (const auto& map : features_.maps)
      levels.push_back(convolved(convolved(map, "conv.0.0", 1).relu(), name, 0)
                           .permute({0, 2, 3, 1})
                           .reshape({kImages, -1, values}));
    return at::cat(levels, 1);
  }

  /// Returns samples that contain all anchors; every fifth is foreground.
  SampledCandidates all(std::int64_t anchors) const {
    const auto rows = at::arange(kImages * anchors);
    return {.rows = rows, .foreground = at::arange(0, rows.numel(), 5)};
  }

  std::vector<at::Tensor> gradients(const at::Tensor& loss) {
    loss.backward();
    std::vector<at::Tensor> found;
    const auto take = [&](at::Tensor leaf) {
      found.push_back(leaf.grad().clone());
      leaf.mutable_grad().reset();
    };
    for (const auto& map : features_.maps) take(map);
    for (const auto& parameter : parameters_) take(parameter.value);
    return found;
  }

  Parameters parameters_;
  RpnOptions options_;
  BoxOptions boxes_;
  Rpn rpn_{Scope(parameters_, 1) / "rpn", options_, boxes_, kChannels};
  Features features_;
  std::vector<Truth> truths_;
};

TEST_F(RpnLosses, MatchWholeMaps) {
  const auto output = rpn_(features_);
  EXPECT_FALSE(output.logits.requires_grad());
  const auto logits = dense("cls_logits", 1).squeeze(2), deltas = dense("bbox_pred", 4);
  EXPECT_TRUE(tensors_close(output.logits, logits.detach(), 1e-5));
  EXPECT_TRUE(tensors_close(output.deltas, deltas.detach(), 1e-5));

  const auto anchors = output.anchors.size(0);
  const auto samples = all(anchors);
  const Matches matches{at::arange(kImages).view({-1, 1}).expand({kImages, anchors}).contiguous(),
                        {}};
  const double divisor = static_cast<double>(options_.batch_size_per_image) * kImages;
  const auto targets = at::zeros({kImages * anchors}).index_fill_(0, samples.foreground, 1);
  const auto objectness =
      at::binary_cross_entropy_with_logits(logits.flatten(), targets, {}, {}, at::Reduction::Sum) /
      divisor;
  const auto image = samples.foreground.div(anchors, "floor");
  const auto encoded =
      boxes_.coder().encode(output.anchors.index_select(0, samples.foreground.remainder(anchors)),
                            at::cat({truths_[0].boxes, truths_[1].boxes}).index_select(0, image));
  const auto box =
      (deltas.view({-1, 4}).index_select(0, samples.foreground) - encoded).abs().sum() / divisor;

  const auto losses = means_of(rpn_.losses(features_, output, truths_, matches, samples, {}));
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_TRUE(tensors_close(losses[0].second.detach(), objectness.detach(), 1e-5));
  EXPECT_TRUE(tensors_close(losses[1].second.detach(), box.detach(), 1e-5));
  const auto wanted = gradients(objectness + box),
             found = gradients(losses[0].second + losses[1].second);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(tensors_close(found[i], wanted[i], 1e-4)) << i;
}

TEST_F(RpnLosses, AreZeroWithoutAnchors) {
  const auto output = rpn_(features_);
  const SampledCandidates none{.rows = at::zeros({0}, at::kLong),
                               .foreground = at::zeros({0}, at::kLong)};
  const auto losses = means_of(rpn_.losses(features_, output, truths_, {}, none, {}));
  const auto sum = losses[0].second + losses[1].second;
  EXPECT_EQ(sum.item<float>(), 0);
  for (const auto& gradient : gradients(sum)) EXPECT_EQ(gradient.abs().sum().item<float>(), 0);
}

}  // namespace
}  // namespace millrace::testing
