#include "millrace/models/maskrcnn/rpn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "millrace/base/options.h"
#include "millrace/models/layers/losses.h"
#include "millrace/models/ops/proposals.h"

namespace millrace {
namespace {

constexpr std::uint64_t kAnchorStream = 1;  // of the step's random numbers

/// True for anchors that lie within `margin` pixels of the image, (T) bool.
at::Tensor inside(const at::Tensor& anchors, double height, double width, double margin) {
  const auto side = anchors.unbind(1);
  return (side[0] >= -margin) & (side[1] >= -margin) & (side[2] < width + margin) &
         (side[3] < height + margin);
}

}  // namespace

void RpnOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1}, count{.min = 1, .max = 1e6};
  anchors.describe(o);
  o.add("rpn.boundary_thresh", anchor_boundary,
        "anchors further outside are not trained on; < 0: all are", {.unit = "px"});
  o.add("rpn.fg_iou_thresh", high, "IoU from which an anchor is foreground", share);
  o.add("rpn.bg_iou_thresh", low, "IoU below which an anchor is background", share);
  o.add("rpn.batch_size_per_image", batch, "anchors sampled per image", count);
  o.add("rpn.positive_fraction", positive, "largest share of foreground among them", share);
  o.add("rpn.smooth_l1_beta", beta, "smooth-L1 beta of the RPN's boxes; 0 is L1", {.min = 0});
  o.add("rpn.loss_normalizer", normalizer,
        "RPN losses are divided by rpn.batch_size_per_image x images, or by the anchors sampled",
        {"batch", "sampled"});
  o.add("rpn.pre_nms_top_n_train", pre_nms_train, "proposals per level before NMS", count);
  o.add("rpn.pre_nms_top_n_test", pre_nms_test, "the same when detecting", count);
  o.add("rpn.post_nms_top_n_train", post_nms_train, "proposals per image after NMS", count);
  o.add("rpn.post_nms_top_n_test", post_nms_test, "the same when detecting", count);
  o.add("rpn.nms_thresh", nms, "IoU of the proposals' NMS", share);
  o.add("rpn.rank_by", rank,
        "NMS ranks proposals by logit, or by probability (torchvision: more ties)",
        {"logit", "probability"});
  o.add("rpn.min_size", min_side, "smaller proposals go (sides must exceed 0 in any case)",
        {.min = 0, .unit = "px"});
}

void RpnOptions::check(const Config& table) const {
  anchors.check(table);
  require(table, "rpn.bg_iou_thresh", low <= high, "must not be above rpn.fg_iou_thresh");
}

Rpn::Rpn(const Scope& scope, const RpnOptions& options, const BoxOptions& boxes,
         std::int64_t channels)
    : options_(options), coder_(boxes.coder()) {
  const auto cells = options.anchors.cell_count();
  const auto head = scope / "head";
  const Init small{Init::Kind::normal, 0.01};
  conv_ = Conv2d(head / "conv" / 0 / 0, {channels, channels, 3}, small);
  logits_ = Conv2d(head / "cls_logits", {channels, cells, 1}, small);
  deltas_ = Conv2d(head / "bbox_pred", {channels, cells * 4, 1}, small);
}

Rpn::Output Rpn::operator()(const Features& features) const {
  Output output;
  std::vector<at::Tensor> logits, deltas;
  for (const auto& map : features.maps) {
    const auto n = map.size(0);
    const auto hidden = conv_(map, {.relu = true});
    // Channels last in memory, so that these views cost nothing.
    logits.push_back(logits_(hidden).permute({0, 2, 3, 1}).reshape({n, -1}));
    deltas.push_back(deltas_(hidden).permute({0, 2, 3, 1}).reshape({n, -1, 4}));
  }
  const auto anchors = options_.anchors(features.maps, features.padded, /*first_stride=*/4);
  for (const auto& level : anchors) output.level_counts.push_back(level.size(0));
  output.logits = at::cat(logits, 1).to(at::kFloat);
  output.deltas = at::cat(deltas, 1).to(at::kFloat);
  output.anchors = at::cat(anchors);
  return output;
}

std::vector<at::Tensor> Rpn::proposals(const Output& output, const std::vector<ImageSize>& sizes,
                                       bool training) const {
  return millrace::proposals(output.logits, output.deltas, output.anchors, output.level_counts,
                             sizes,
                             {.before = training ? options_.pre_nms_train : options_.pre_nms_test,
                              .after = training ? options_.post_nms_train : options_.post_nms_test,
                              .threshold = options_.nms,
                              .min_side = options_.min_side,
                              .by_probability = options_.rank == "probability",
                              .coder = coder_});
}

Matches Rpn::match_anchors(const at::Tensor& anchors, const Truth& truth) const {
  auto matches = match(truth.boxes, anchors,
                       {options_.low, options_.high, /*low_quality=*/true, coder_.offset});
  if (options_.anchor_boundary >= 0)
    matches.label.masked_fill_(
        inside(anchors, truth.height, truth.width, options_.anchor_boundary).logical_not(), -1);
  return matches;
}

std::vector<Rpn::Drawn> Rpn::draw(const Output& output, const std::vector<Truth>& truths,
                                  const StepInfo& step) const {
  std::vector<Drawn> drawn;
  for (std::size_t i = 0; i < truths.size(); ++i) {
    const auto matches = match_anchors(output.anchors, truths[i]);
    auto rng = step.rng(kAnchorStream, i);
    auto anchors = sample(matches.label, options_.batch, options_.positive, rng);
    auto truth = matches.truth.index_select(0, anchors.positive);
    drawn.push_back({std::move(anchors), std::move(truth)});
  }
  return drawn;
}

Losses Rpn::losses(const Output& output, const std::vector<Truth>& truths,
                   const std::vector<Drawn>& drawn, const StepInfo& step) const {
  std::vector<at::Tensor> logits, targets, deltas, delta_targets;
  std::int64_t sampled = 0, foreground = 0;
  for (std::size_t i = 0; i < truths.size(); ++i) {
    const auto& [positive, negative] = drawn[i].anchors;
    const auto image = static_cast<std::int64_t>(i);
    const auto count = positive.size(0) + negative.size(0);
    sampled += count;
    foreground += positive.size(0);
    logits.push_back(output.logits[image].index_select(0, at::cat({positive, negative})));
    auto target = at::zeros({count}, output.logits.options());
    target.narrow(0, 0, positive.size(0)).fill_(1);
    targets.push_back(target);
    if (positive.size(0) == 0) continue;
    deltas.push_back(output.deltas[image].index_select(0, positive));
    delta_targets.push_back(coder_.encode(output.anchors.index_select(0, positive),
                                          truths[i].boxes.index_select(0, drawn[i].truth)));
  }
  const auto images = static_cast<double>(truths.size());
  const double divisor =
      options_.normalizer == "batch"
          ? static_cast<double>(options_.batch) * step.total("images", images)
          : std::max(1.0, step.total("rpn anchors", static_cast<double>(sampled)));
  const auto all_logits = at::cat(logits), all_targets = at::cat(targets);
  const auto objectness = binary_cross_entropy_sum(all_logits, all_targets) / divisor;
  const auto box =
      deltas.empty()
          ? output.deltas.sum() * 0
          : smooth_l1_sum(at::cat(deltas), at::cat(delta_targets), options_.beta) / divisor;
  if (step.figures) {
    const auto right = ((all_logits > 0) == (all_targets > 0)).sum();
    step.figures->add("rpn/accuracy", right, at::full_like(right, sampled));
    step.figures->add("rpn/fg", static_cast<double>(foreground), images);
    step.figures->add("rpn/bg", static_cast<double>(sampled - foreground), images);
  }
  return {{"loss_objectness", objectness}, {"loss_rpn_box_reg", box}};
}

void add_recall(const std::vector<at::Tensor>& proposals, const std::vector<Truth>& truths,
                Figures& figures) {
  for (std::size_t i = 0; i < truths.size(); ++i) {
    const auto found = match(proposals[i], truths[i].boxes, {.low = 0.5, .high = 0.7}).label;
    const auto half = (found != 0).sum();
    const auto objects = at::full_like(half, found.size(0));
    figures.add("rpn/recall50", half, objects);
    figures.add("rpn/recall70", (found == 1).sum(), objects);
  }
}

}  // namespace millrace
