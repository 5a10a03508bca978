#include "models/maskrcnn/box_stages.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>

#include "base/errors.h"

namespace millrace {
namespace {

std::array<double, 4> four(const std::vector<double>& weights) {
  if (weights.size() != 4) throw ConfigError("model.roi_weights takes four numbers: dx dy dw dh");
  return {weights[0], weights[1], weights[2], weights[3]};
}

}  // namespace

void BoxStagesOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1};
  o.add("roi_iou", iou, "IoU from which a region is foreground", share);
  o.add("roi_batch", batch, "regions sampled an image", {.min = 1});
  o.add("roi_positive", positive, "largest share of foreground among them", share);
  o.add("roi_weights", weights, "weights of dx dy dw dh", {.min = 0});
  head.describe(o);
}

BoxStages::BoxStages(const Scope& scope, const BoxStagesOptions& options, const BoxOptions& boxes,
                     const PoolOptions& pool, std::int64_t in, std::int64_t classes,
                     std::int64_t first)
    : options_(options),
      boxes_(boxes),
      pool_(pool),
      head_(scope / "box_head", scope / "box_predictor", options.head,
            boxes.coder(four(options.weights)), in, classes, first) {}

Candidates BoxStages::candidates(const at::Tensor& proposals, const Truth& truth) const {
  return match_regions(at::cat({proposals, truth.boxes}), truth, options_.iou, boxes_.offset);
}

Samples BoxStages::draw(const Candidates& candidates, const StepInfo& step,
                        std::size_t image) const {
  return draw_regions(candidates, options_.batch, options_.positive, step, image);
}

BoxHead::Output BoxStages::operator()(const Features& features, const at::Tensor& rois) const {
  return head_(pool_regions(features.maps, rois, options_.head.size, pool_));
}

Losses BoxStages::losses(const Features& features, const std::vector<SampledRegions>& regions,
                         const std::vector<Truth>& truths) const {
  std::vector<at::Tensor> boxes;
  for (const auto& image : regions) boxes.push_back(image.boxes);
  const auto loss = head_.loss((*this)(features, as_rois(boxes)), regions, truths);
  return {{"box_class", loss.classification}, {"box_regression", loss.regression}};
}

std::vector<Found> BoxStages::detect(const Features& features,
                                     const std::vector<at::Tensor>& proposals,
                                     const DetectionOptions& detection) const {
  const auto [logits, deltas] = (*this)(features, as_rois(proposals));
  std::vector<Found> found;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const auto count = proposals[i].size(0);
    found.push_back(detect({logits.narrow(0, first, count), deltas.narrow(0, first, count)},
                           proposals[i], features.sizes[i], detection));
    first += count;
  }
  return found;
}

Found BoxStages::detect(const BoxHead::Output& output, const at::Tensor& proposals,
                        const ImageSize& size, const DetectionOptions& detection) const {
  const auto scores = head_.scores(output);
  const auto good =
      ((scores > detection.score_threshold) & at::isfinite(scores)).nonzero();  // (D, 2)
  const auto row = good.select(1, 0), label = good.select(1, 1);
  const auto boxes = head_.boxes(output.deltas, proposals).index({row, label});
  return best_detections({boxes, scores.index({row, label}), label}, size, boxes_.offset,
                         detection);
}

}  // namespace millrace
