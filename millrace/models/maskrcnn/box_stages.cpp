#include "millrace/models/maskrcnn/box_stages.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <utility>

namespace millrace {
namespace {

constexpr std::uint64_t kRegionStream = 2;  // of the step's random numbers

/// The weights of a stage's box coder.
std::array<double, 4> weights_of(const std::vector<double>& weights, std::size_t stage) {
  std::array<double, 4> result;
  std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(stage * 4), 4, result.begin());
  return result;
}

/// Boxes that are not empty, (R', 4).
at::Tensor not_empty(const at::Tensor& boxes) {
  const auto side = boxes.unbind(1);
  return boxes.index_select(0, ((side[2] > side[0]) & (side[3] > side[1])).nonzero().squeeze(1));
}

}  // namespace

Candidates match_regions(const at::Tensor& boxes, const Truth& truth, double iou, double offset) {
  return {boxes, match(truth.boxes, boxes, {iou, iou, /*low_quality=*/false, offset})};
}

SampledRegions take(const Candidates& candidates, const Samples& drawn) {
  return {candidates.boxes.index_select(0, at::cat({drawn.positive, drawn.negative})),
          candidates.matches.truth.index_select(0, drawn.positive), drawn.positive.size(0)};
}

void BoxStagesOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1};
  o.add("roi.fg_iou_thresh", iou,
        "IoU from which a region is foreground; several make a cascade of stages", share);
  o.add("roi.batch_size_per_image", batch, "regions sampled per image", {.min = 1, .max = 1e5});
  o.add("roi.positive_fraction", positive, "largest share of foreground among them", share);
  o.add("box.bbox_reg_weights", weights, "weights of dx dy dw dh, of each stage", {.min = 1e-6})
      .decides(OfWeights::meaning);
  head.describe(o);
}

void BoxStagesOptions::check(const Config& table, const Options& defaults) const {
  head.check(table, defaults);
  require(table, "roi.fg_iou_thresh", !iou.empty(), "takes at least one number");
  const bool fit = weights.size() == 4 * iou.size();
  if (!table.find_path("box.bbox_reg_weights"))  // then the stages were changed
    require(table, "roi.fg_iou_thresh", fit,
            "wants other box.bbox_reg_weights: four numbers, dx dy dw dh, for each number of "
            "roi.fg_iou_thresh");
  require(table, "box.bbox_reg_weights", fit,
          "takes four numbers, dx dy dw dh, for each number of roi.fg_iou_thresh");
  require(table, "box.cls_agnostic_bbox_reg", iou.size() == 1 || head.class_agnostic,
          "must be true for a cascade (several numbers in roi.fg_iou_thresh)");
}

BoxStages::BoxStages(const Scope& scope, const BoxStagesOptions& options, const BoxOptions& boxes,
                     const PoolOptions& pool, std::int64_t in, std::int64_t classes,
                     std::int64_t first)
    : options_(options), boxes_(boxes), pool_(pool) {
  const auto head = scope / "box_head", predictor = scope / "box_predictor";
  const auto stages = options.iou.size();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const auto number = static_cast<std::int64_t>(stage);
    heads_.emplace_back(stages > 1 ? head / number : head,
                        stages > 1 ? predictor / number : predictor, options.head,
                        boxes.coder(weights_of(options.weights, stage)), in, classes, first);
  }
}

Candidates BoxStages::candidates(const at::Tensor& proposals, const Truth& truth) const {
  return match_regions(at::cat({proposals, truth.boxes}), truth, options_.iou[0], boxes_.offset);
}

Samples BoxStages::draw(const Candidates& candidates, const StepInfo& step,
                        std::size_t image) const {
  auto rng = step.rng(kRegionStream, image);
  return sample(candidates.matches.label, options_.batch, options_.positive, rng);
}

BoxHead::Output BoxStages::output(const Features& features, const at::Tensor& rois,
                                  std::size_t stage, const NormPass& pass) const {
  const auto pooled = pool_regions(features.maps, rois, options_.head.size, pool_);
  if (heads_.size() > 1 &&
      pooled.requires_grad())  // the pyramid learns from the mean of the stages
    pooled.register_hook([share = 1.0 / static_cast<double>(heads_.size())](
                             const at::Tensor& gradient) { return gradient * share; });
  return heads_[stage](pooled, pass);
}

std::vector<at::Tensor> BoxStages::refined(const BoxHead& head, const at::Tensor& deltas,
                                           const std::vector<at::Tensor>& regions,
                                           const std::vector<ImageSize>& sizes) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> result;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto count = regions[i].size(0);
    const auto boxes = head.boxes(deltas.narrow(0, first, count), regions[i]).squeeze(1);
    result.push_back(clip_boxes(boxes, sizes[i].first, sizes[i].second));
    first += count;
  }
  return result;
}

Losses BoxStages::losses(const Features& features, std::vector<SampledRegions> regions,
                         const std::vector<Truth>& truths, const StepInfo& step) const {
  Losses losses;
  for (std::size_t stage = 0; stage < heads_.size(); ++stage) {
    std::vector<at::Tensor> boxes;
    for (const auto& image : regions) boxes.push_back(image.boxes);
    const auto found = output(features, as_rois(boxes), stage, features.pass);
    const auto number = heads_.size() > 1 ? "_stage" + std::to_string(stage) : "";
    const auto loss = heads_[stage].loss(found, regions, truths, step, number);
    losses.emplace_back("loss_classifier" + number, loss.classification);
    losses.emplace_back("loss_box_reg" + number, loss.regression);
    if (stage + 1 == heads_.size()) break;

    const auto moved = refined(heads_[stage], found.deltas, boxes, features.sizes);
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const auto next =
          match_regions(not_empty(moved[i]), truths[i], options_.iou[stage + 1], boxes_.offset);
      const auto& label = next.matches.label;
      regions[i] =
          take(next, {(label == 1).nonzero().squeeze(1), (label == 0).nonzero().squeeze(1)});
    }
  }
  return losses;
}

std::vector<Found> BoxStages::detect(const Features& features, std::vector<at::Tensor> proposals,
                                     const DetectionOptions& detection) const {
  at::Tensor all_scores, deltas;
  for (std::size_t stage = 0; stage < heads_.size(); ++stage) {
    if (stage > 0) proposals = refined(heads_[stage - 1], deltas, proposals, features.sizes);
    const auto found = output(features, as_rois(proposals), stage, NormPass{});
    const auto scores = heads_[stage].scores(found);
    all_scores = stage > 0 ? all_scores + scores : scores;
    deltas = found.deltas;
  }
  if (heads_.size() > 1) all_scores = all_scores / static_cast<double>(heads_.size());

  std::vector<Found> found;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const auto count = proposals[i].size(0);
    found.push_back(detect(all_scores.narrow(0, first, count), deltas.narrow(0, first, count),
                           proposals[i], features.sizes[i], detection));
    first += count;
  }
  return found;
}

Found BoxStages::detect(const at::Tensor& scores, const at::Tensor& deltas,
                        const at::Tensor& proposals, const ImageSize& size,
                        const DetectionOptions& detection) const {
  const auto boxes = heads_.back().boxes(deltas, proposals);
  // (D, 2)
  const auto good = ((scores > detection.score_threshold) & at::isfinite(scores)).nonzero();
  const auto row = good.select(1, 0), label = good.select(1, 1);
  const auto group = boxes.size(1) > 1 ? label : at::zeros_like(label);
  return best_detections({boxes.index({row, group}), scores.index({row, label}), label}, size,
                         boxes_.offset, detection);
}

}  // namespace millrace
