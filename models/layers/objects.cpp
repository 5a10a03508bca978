#include "millrace/models/layers/objects.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>

#include "millrace/base/errors.h"
#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/soft_nms.h"

namespace millrace {
namespace {

Found rows(const Found& all, const at::Tensor& index) {
  return {all.boxes.index_select(0, index), all.scores.index_select(0, index),
          all.labels.index_select(0, index)};
}

}  // namespace

void DetectionOptions::describe(Options& o) {
  o.add("test.score_thresh", score_thresh, "score that detections must exceed",
        {.min = 0, .max = 1});
  o.add("test.nms_thresh", nms_thresh, "IoU threshold of the detections' NMS",
        {.min = 0, .max = 1});
  o.add("test.nms_type", nms_type,
        "hard removes overlapping detections; linear and gaussian lower their scores (soft-NMS, "
        "Bodla et al. 2017)");
  o.add("test.soft_nms_sigma", soft_nms_sigma,
        "width of soft-NMS's gaussian; larger values lower scores less", {.min = 1e-6, .max = 1e6});
  o.add("test.detections_per_img", detections_per_img, "maximum number of detections per image",
        {.min = 1, .max = 1e5});
  o.add("test.min_size", min_size, "minimum side of a detection", {.min = 0, .unit = "px"});
  o.add("test.aug_scales", aug_scales,
        "scales of the image at which detections are computed and merged", {.min = 0.1, .max = 10});
  o.add("test.aug_flip", aug_flip, "merge detections with those of the mirrored image");
}

void DetectionOptions::check(const Config& table, const Options& defaults) const {
  require(table, "test.aug_scales", !aug_scales.empty(),
          "needs at least one scale; 1 = the image itself");
  if (nms_type == NmsType::gaussian)
    defaults.refuse_unused(table, {"test.nms_thresh"},
                           "with test.nms_type = \"gaussian\", which lowers scores at any IoU");
  else
    defaults.refuse_unused(table, {"test.soft_nms_sigma"}, "without test.nms_type = \"gaussian\"");
}

Found best_detections(const Found& candidates, const ImageSize& size, double offset,
                      const DetectionOptions& options) {
  const auto boxes = clip_boxes(candidates.boxes, size.first, size.second);
  const auto w = boxes.select(1, 2) - boxes.select(1, 0),
             h = boxes.select(1, 3) - boxes.select(1, 1);
  const auto good = ((w >= options.min_size) & (h >= options.min_size) & at::isfinite(w + h))
                        .nonzero()
                        .squeeze(1);
  const auto found = rows({boxes, candidates.scores, candidates.labels}, good);
  if (options.nms_type == NmsType::hard) {
    const auto best =
        batched_nms(found.boxes, found.scores, found.labels, options.nms_thresh, offset);
    return rows(found, best.narrow(0, 0, std::min(options.detections_per_img, best.size(0))));
  }
  const auto [best, scores] = soft_nms(found.boxes, found.scores, found.labels,
                                       {.gaussian = options.nms_type == NmsType::gaussian,
                                        .sigma = options.soft_nms_sigma,
                                        .threshold = options.nms_thresh,
                                        .score_threshold = options.score_thresh,
                                        .offset = offset});
  const auto count = std::min(options.detections_per_img, best.size(0));
  auto kept = rows(found, best.narrow(0, 0, count));
  kept.scores = scores.narrow(0, 0, count);
  return kept;
}

void refuse_soft_nms(const DetectionOptions& options) {
  if (options.nms_type != NmsType::hard)
    throw Error(
        "ONNX has no operator for soft-NMS (model.test.nms_type); export with model.test.nms_type "
        "= \"hard\", which removes overlapping detections");
}

onnx::Value mask_small_boxes(const onnx::Value& boxes, const onnx::Value& scores,
                             const DetectionOptions& options) {
  auto& g = *boxes.graph;
  const auto sides = sides_of_boxes(boxes);
  const auto enough = sides >= options.min_size;
  const auto both = onnx::squeeze(onnx::slice(enough, -1, 0, 1), {-1}) &&
                    onnx::squeeze(onnx::slice(enough, -1, 1, 2), {-1});
  return onnx::where(both, scores, g.scalar(-1, onnx::Type::f32));
}

std::pair<onnx::Value, onnx::Value> top_kept(const onnx::Value& scores, const onnx::Value& kept,
                                             std::int64_t most) {
  const auto none = onnx::filled(onnx::sides_of(scores, 0, 2), -1, onnx::Type::f32);
  const auto left = onnx::scatter_nd(none, kept, onnx::gather_nd(scores, kept));
  return onnx::top_k(left, onnx::minimum(onnx::side_of(scores, 1), static_cast<double>(most)));
}

FoundNodes best_detections(const FoundNodes& candidates, const onnx::Value& limits, double offset,
                           std::int64_t classes, const DetectionOptions& options) {
  refuse_soft_nms(options);
  auto& g = *limits.graph;
  const auto in = g.in("detections");
  const auto boxes = clip_boxes(candidates.boxes, onnx::unsqueeze(limits, {1}));
  const auto scores = mask_small_boxes(boxes, candidates.scores, options);
  const auto label = g.constant(at::arange(classes, at::kLong).view({-1, 1}), "labels");
  const auto by_class = onnx::where(onnx::equal(onnx::unsqueeze(candidates.labels, {1}), label),
                                    onnx::unsqueeze(scores, {1}), -1);  // (N, K, C)
  const auto kept =
      batched_nms(boxes, by_class, options.nms_thresh, offset, options.detections_per_img);
  const auto [best, places] =
      top_kept(scores, onnx::gather(kept, g.ints({0, 2}), 1), options.detections_per_img);
  const auto index = onnx::unsqueeze(places, {2});
  return {onnx::gather_nd(boxes, index, 1), best, onnx::gather_nd(candidates.labels, index, 1)};
}

}  // namespace millrace
