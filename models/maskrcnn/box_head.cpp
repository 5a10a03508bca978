#include "models/maskrcnn/box_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>

#include <algorithm>

#include "models/layers/losses.h"
#include "models/maskrcnn/regions.h"
#include "models/ops/nms.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSamplerStream = 2;  // of the step's random numbers

}  // namespace

BoxHead::BoxHead(const Scope& scope, const MaskRcnnOptions& options, std::int64_t classes)
    : options_(options), classes_(classes), first_(options.background == "first") {
  const auto in = options.fpn_channels * options.box_size * options.box_size;
  const auto predictor = scope / "box_predictor";
  fc6_ = Linear(scope / "box_head" / "fc6", in, options.box_channels, {Init::Kind::xavier});
  fc7_ = Linear(scope / "box_head" / "fc7", options.box_channels, options.box_channels,
                {Init::Kind::xavier});
  logits_ = Linear(predictor / "cls_score", options.box_channels, classes + 1,
                   {Init::Kind::normal, 0.01});
  deltas_ = Linear(predictor / "bbox_pred", options.box_channels, (classes + first_) * 4,
                   {Init::Kind::normal, 0.001});
}

BoxHead::Output BoxHead::operator()(const std::vector<at::Tensor>& features,
                                    const at::Tensor& rois) const {
  const auto pooled = pool_regions(features, rois, options_.box_size, options_);
  const auto hidden =
      fc7_(fc6_(pooled.flatten(1)).relu_()).relu_();  // flattened as (C, H, W)
  return {logits_(hidden).to(at::kFloat),
          deltas_(hidden).view({-1, classes_ + first_, 4}).to(at::kFloat)};
}

SampledRegions BoxHead::sample_regions(const at::Tensor& proposals, const Truth& truth,
                                       const StepInfo& step, std::size_t image) const {
  const at::NoGradGuard no_grad;
  const auto candidates = at::cat({proposals, truth.boxes});
  const auto matches = match(box_iou(truth.boxes, candidates, options_.box_offset),
                             options_.roi_iou, options_.roi_iou,
                             /*low_quality=*/false);
  Rng rng{step.seed, static_cast<std::uint64_t>(step.step), kSamplerStream, image};
  const auto [positive, negative] =
      sample(matches.label, options_.roi_batch, options_.roi_positive, rng);
  return {candidates.index_select(0, at::cat({positive, negative})),
          matches.truth.index_select(0, positive), positive.size(0)};
}

Losses BoxHead::losses(const std::vector<at::Tensor>& features,
                       const std::vector<SampledRegions>& regions,
                       const std::vector<Truth>& truths) const {
  std::vector<at::Tensor> boxes, labels, foreground, foreground_labels, targets;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto& [region, truth, count] = regions[i];
    const auto total = region.size(0);
    const auto label = truths[i].labels.index_select(0, truth);
    boxes.push_back(region);
    labels.push_back(label + first_);
    labels.push_back(at::full({total - count}, background(), at::kLong));
    foreground.push_back(at::arange(first, first + count, at::kLong));
    foreground_labels.push_back(label + first_);
    targets.push_back(options_.roi_coder().encode(region.narrow(0, 0, count),
                                                  truths[i].boxes.index_select(0, truth)));
    first += total;
  }
  const auto [logits, deltas] = (*this)(features, as_rois(boxes));
  const auto classification = at::cross_entropy_loss(logits, at::cat(labels));
  const auto predicted = deltas.index({at::cat(foreground), at::cat(foreground_labels)});  // (F, 4)
  const auto regression = smooth_l1_sum(predicted, at::cat(targets), options_.roi_beta) /
                          static_cast<double>(std::max<std::int64_t>(1, first));
  return {{"box_class", classification}, {"box_regression", regression}};
}

std::vector<BoxHead::Found> BoxHead::detect(
    const std::vector<at::Tensor>& features, const std::vector<at::Tensor>& proposals,
    const std::vector<std::pair<double, double>>& sizes) const {
  const auto [logits, deltas] = (*this)(features, as_rois(proposals));
  const auto all_scores = at::softmax(logits, 1).narrow(1, first_, classes_);
  const auto all_deltas = deltas.narrow(1, first_, classes_).flatten(1);

  std::vector<Found> found;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const auto count = proposals[i].size(0);
    const auto scores = all_scores.narrow(0, first, count);
    const auto decoded =
        options_.roi_coder().decode(proposals[i], all_deltas.narrow(0, first, count));
    first += count;

    const auto candidates =
        ((scores > options_.score_threshold) & at::isfinite(scores)).nonzero();  // (D, 2)
    const auto row = candidates.select(1, 0), label = candidates.select(1, 1);
    auto box = clip_boxes(decoded.view({-1, classes_, 4}).index({row, label}), sizes[i].first,
                          sizes[i].second);
    auto score = scores.index({row, label});
    const auto w = box.select(1, 2) - box.select(1, 0), h = box.select(1, 3) - box.select(1, 1);
    const auto good = ((w >= options_.detection_min_side) & (h >= options_.detection_min_side) &
                       at::isfinite(w + h))
                          .nonzero()
                          .squeeze(1);
    box = box.index_select(0, good);
    score = score.index_select(0, good);
    const auto kept_label = label.index_select(0, good);

    auto best = batched_nms(box, score, kept_label, options_.detection_nms, options_.box_offset);
    best = best.narrow(0, 0, std::min(options_.detections, best.size(0)));
    found.push_back(
        {box.index_select(0, best), score.index_select(0, best), kept_label.index_select(0, best)});
  }
  return found;
}

}  // namespace millrace
