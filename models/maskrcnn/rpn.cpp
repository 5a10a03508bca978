#include "models/maskrcnn/rpn.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "models/layers/losses.h"
#include "models/ops/nms.h"

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
    const auto hidden = conv_(features[level], {.relu = true});
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
  output.logits = at::cat(logits, 1).to(at::kFloat);
  output.deltas = at::cat(deltas, 1).to(at::kFloat);
  output.anchors = at::cat(anchors);
  return output;
}

at::Tensor Rpn::proposals(const Output& output, std::int64_t n, double height, double width,
                          bool training) const {
  const at::NoGradGuard no_grad;
  const auto before = training ? options_.rpn_pre_nms_train : options_.rpn_pre_nms_test;
  const auto after = training ? options_.rpn_post_nms_train : options_.rpn_post_nms_test;
  const auto all_logits = output.logits[n].detach(), all_deltas = output.deltas[n].detach();

  std::vector<at::Tensor> indices, levels;
  std::int64_t first = 0;
  for (std::size_t level = 0; level < output.level_counts.size(); ++level) {
    const auto count = output.level_counts[level];
    const auto top = std::get<1>(all_logits.narrow(0, first, count).topk(std::min(before, count)));
    indices.push_back(top + first);
    levels.push_back(at::full({top.size(0)}, static_cast<std::int64_t>(level), at::kLong));
    first += count;
  }
  const auto index = at::cat(indices);
  auto scores = all_logits.index_select(0, index);
  auto boxes = options_.rpn_coder().decode(output.anchors.index_select(0, index),
                                           all_deltas.index_select(0, index));
  auto level = at::cat(levels);

  boxes = clip_boxes(boxes, height, width);
  const auto w = boxes.select(1, 2) - boxes.select(1, 0),
             h = boxes.select(1, 3) - boxes.select(1, 1);
  auto good = at::isfinite(boxes).all(1) & at::isfinite(scores);
  good = good &
         (options_.rpn_min_side > 0 ? (w >= options_.rpn_min_side) & (h >= options_.rpn_min_side)
                                    : (w > 0) & (h > 0));
  const auto kept = good.nonzero().squeeze(1);
  boxes = boxes.index_select(0, kept);
  scores = scores.index_select(0, kept);
  level = level.index_select(0, kept);

  // torchvision ranks by probability: logits that round to the same one are tied.
  if (options_.rpn_rank == "probability") scores = scores.sigmoid();
  const auto best = batched_nms(boxes, scores, level, options_.rpn_nms, options_.box_offset);
  return boxes.index_select(0, best.narrow(0, 0, std::min(after, best.size(0))));
}

Losses Rpn::losses(const Output& output, const std::vector<Truth>& truths,
                   const StepInfo& step) const {
  const auto n = static_cast<std::int64_t>(truths.size());
  std::vector<at::Tensor> logits, targets, deltas, delta_targets;
  std::int64_t sampled = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& truth = truths[static_cast<std::size_t>(i)];
    auto matches = match(box_iou(truth.boxes, output.anchors, options_.box_offset),
                         options_.rpn_low, options_.rpn_high,
                         /*low_quality=*/true);
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
