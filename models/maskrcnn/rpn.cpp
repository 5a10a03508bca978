#include "models/maskrcnn/rpn.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "models/layers/losses.h"
#include "models/ops/proposals.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSamplerStream = 1;  // of the step's random numbers

/// True for anchors that lie within `margin` pixels of the image, (T) bool.
at::Tensor inside(const at::Tensor& anchors, double height, double width, double margin) {
  const auto side = anchors.unbind(1);
  return (side[0] >= -margin) & (side[1] >= -margin) & (side[2] < width + margin) &
         (side[3] < height + margin);
}

}  // namespace

Rpn::Rpn(const Scope& scope, const MaskRcnnOptions& options) : options_(options) {
  const auto cells = static_cast<std::int64_t>(options.anchor_ratios.size());
  const auto channels = options.fpn_channels;
  const auto head = scope / "head";
  const Init small{Init::Kind::normal, 0.01};
  conv_ = Conv2d(head / "conv" / 0 / 0, {channels, channels, 3}, small);
  logits_ = Conv2d(head / "cls_logits", {channels, cells, 1}, small);
  deltas_ = Conv2d(head / "bbox_pred", {channels, cells * 4, 1}, small);
}

Rpn::Output Rpn::operator()(const std::vector<at::Tensor>& features,
                            std::pair<std::int64_t, std::int64_t> padded) const {
  const auto anchor_options = options_.anchors();
  Output output;
  std::vector<at::Tensor> logits, deltas, anchors;
  for (std::size_t level = 0; level < features.size(); ++level) {
    const auto n = features[level].size(0), height = features[level].size(2),
               width = features[level].size(3);
    const auto hidden = at::relu(conv_(features[level]));
    // Channels last in memory, so that these views cost nothing.
    logits.push_back(logits_(hidden).permute({0, 2, 3, 1}).reshape({n, -1}));
    deltas.push_back(deltas_(hidden).permute({0, 2, 3, 1}).reshape({n, -1, 4}));

    const double stride = static_cast<double>(4 << level);
    const bool by_grid = options_.anchor_stride == "grid";
    const auto cells = cell_anchors(anchor_options.sizes[level], anchor_options, stride);
    anchors.push_back(
        grid_anchors(cells, height, width,
                     {by_grid ? static_cast<double>(padded.first / height) : stride,
                      by_grid ? static_cast<double>(padded.second / width) : stride}));
    output.level_counts.push_back(anchors.back().size(0));
  }
  output.logits = at::cat(logits, 1);
  output.deltas = at::cat(deltas, 1);
  output.anchors = at::cat(anchors);
  return output;
}

std::vector<at::Tensor> Rpn::proposals(const Output& output,
                                       const std::vector<std::pair<double, double>>& sizes,
                                       bool training) const {
  return millrace::proposals(
      output.logits, output.deltas, output.anchors, output.level_counts, sizes,
      {.before = training ? options_.rpn_pre_nms_train : options_.rpn_pre_nms_test,
       .after = training ? options_.rpn_post_nms_train : options_.rpn_post_nms_test,
       .threshold = options_.rpn_nms,
       .min_side = options_.rpn_min_side,
       .by_probability = options_.rpn_rank == "probability",
       .coder = options_.rpn_coder()});
}

Losses Rpn::losses(const Output& output, const std::vector<Truth>& truths,
                   const StepInfo& step) const {
  const auto n = static_cast<std::int64_t>(truths.size());
  std::vector<at::Tensor> logits, targets, deltas, delta_targets;
  std::int64_t sampled = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& truth = truths[static_cast<std::size_t>(i)];
    auto matches =
        match(truth.boxes, output.anchors,
              {options_.rpn_low, options_.rpn_high, /*low_quality=*/true, options_.box_offset});
    if (options_.anchor_boundary >= 0)
      matches.label.masked_fill_(
          inside(output.anchors, truth.height, truth.width, options_.anchor_boundary).logical_not(),
          -1);
    Rng rng{step.seed, static_cast<std::uint64_t>(step.step), kSamplerStream,
            static_cast<std::uint64_t>(i)};
    const auto [positive, negative] =
        sample(matches.label, options_.rpn_batch, options_.rpn_positive, rng);
    sampled += positive.size(0) + negative.size(0);

    logits.push_back(output.logits[i].index_select(0, at::cat({positive, negative})));
    auto target = at::zeros({positive.size(0) + negative.size(0)});
    target.narrow(0, 0, positive.size(0)).fill_(1);
    targets.push_back(target);
    if (positive.size(0) == 0) continue;
    deltas.push_back(output.deltas[i].index_select(0, positive));
    delta_targets.push_back(options_.rpn_coder().encode(
        output.anchors.index_select(0, positive),
        truth.boxes.index_select(0, matches.truth.index_select(0, positive))));
  }
  const double divisor = options_.rpn_normalizer == "batch"
                             ? static_cast<double>(options_.rpn_batch * n)
                             : static_cast<double>(std::max<std::int64_t>(1, sampled));
  const auto objectness = binary_cross_entropy_sum(at::cat(logits), at::cat(targets)) / divisor;
  const auto box =
      deltas.empty()
          ? output.deltas.sum() * 0
          : smooth_l1_sum(at::cat(deltas), at::cat(delta_targets), options_.rpn_beta) / divisor;
  return {{"rpn_objectness", objectness}, {"rpn_box", box}};
}

}  // namespace millrace
