#include "millrace/models/maskrcnn/box_stages.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <utility>

#include "millrace/models/layers/truth_pack.h"
#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/nms.h"

namespace millrace {
namespace {

constexpr std::uint64_t kRegionStream = 2;  // stream of the step's random numbers

/// Returns the weights of a stage's box coder.
std::array<double, 4> weights_of(const std::vector<double>& weights, std::size_t stage) {
  std::array<double, 4> result;
  std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(stage * 4), 4, result.begin());
  return result;
}

/// Returns the boxes (R, 4) that a stage predicts for rois (R, 5), clipped to their images' `sizes`
/// (R, 4): width, height, width, height.
at::Tensor decode_clipped_boxes(const BoxHead& head, const at::Tensor& deltas,
                                const at::Tensor& rois, const at::Tensor& sizes) {
  const auto boxes = head.boxes(deltas, rois.narrow(1, 1, 4)).squeeze(1);
  return at::minimum(boxes.clamp_min(0), sizes);
}

}  // namespace

Candidates match_regions(const at::Tensor& boxes, const at::Tensor& valid,
                         const std::vector<Truth>& truths, double iou, double offset) {
  const auto pack = pack_of(truths);
  Candidates candidates{
      boxes, match(pack->boxes, pack->begins, boxes, {iou, iou, /*low_quality=*/false, offset})};
  candidates.matches.label.masked_fill_(valid.logical_not(), -1);
  return candidates;
}

SampledRegions select_sampled(const Candidates& candidates, const SampledCandidates& samples) {
  const auto boxes = candidates.boxes.reshape({-1, 4}).index_select(0, samples.rows);
  const auto matched = samples.rows.index_select(0, samples.foreground);
  return {at::cat({samples.image.to(boxes.scalar_type()).unsqueeze(1), boxes}, 1),
          candidates.matches.truth.view(-1).index_select(0, matched), samples};
}

void BoxStagesOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1};
  o.add("roi.fg_iou_thresh", fg_iou_thresh,
        "IoU from which a region is foreground; several numbers = a cascade of stages", share);
  o.add("roi.batch_size_per_image", batch_size_per_image, "regions sampled per image",
        {.min = 1, .max = 1e5});
  o.add("roi.positive_fraction", positive_fraction,
        "maximum share of foreground among the sampled regions", share);
  o.add("box.bbox_reg_weights", bbox_reg_weights, "weights of dx, dy, dw, dh for each stage",
        {.min = 1e-6})
      .affects(WeightEffect::meaning);
  head.describe(o);
}

void BoxStagesOptions::check(const Config& table, const Options& defaults) const {
  head.check(table, defaults);
  require(table, "roi.fg_iou_thresh", !fg_iou_thresh.empty(), "needs at least one number");
  const bool fit = bbox_reg_weights.size() == 4 * fg_iou_thresh.size();
  if (!table.find_path("box.bbox_reg_weights"))  // then the number of stages was changed
    require(table, "roi.fg_iou_thresh", fit,
            "needs other box.bbox_reg_weights: four numbers (dx, dy, dw, dh) for each number of "
            "roi.fg_iou_thresh");
  require(table, "box.bbox_reg_weights", fit,
          "needs four numbers (dx, dy, dw, dh) for each number of roi.fg_iou_thresh");
  require(table, "box.cls_agnostic_bbox_reg",
          fg_iou_thresh.size() == 1 || head.cls_agnostic_bbox_reg,
          "must be true for a cascade (several numbers in roi.fg_iou_thresh)");
}

BoxStages::BoxStages(const Scope& scope, const BoxStagesOptions& options, const BoxOptions& boxes,
                     RegionPooler pool, std::int64_t in, std::int64_t classes, std::int64_t first)
    : options_(options), boxes_(boxes), pool_(std::move(pool)) {
  const auto head = scope / "box_head", predictor = scope / "box_predictor";
  auto own = options.head;
  own.pooler_resolution = pool_.side(own.pooler_resolution);
  const auto stages = options.fg_iou_thresh.size();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const auto number = static_cast<std::int64_t>(stage);
    heads_.emplace_back(
        stages > 1 ? head / number : head, stages > 1 ? predictor / number : predictor, own,
        boxes.coder(weights_of(options.bbox_reg_weights, stage)), in, classes, first);
  }
}

Candidates BoxStages::candidates(const Proposals& proposals,
                                 const std::vector<Truth>& truths) const {
  const auto pack = pack_of(truths);
  const auto& [boxes, counts] = proposals;
  const auto given = at::arange(boxes.size(1), counts.options()) < counts.unsqueeze(1);
  return match_regions(at::cat({boxes, pack->padded}, 1), at::cat({given, pack->present}, 1),
                       truths, options_.fg_iou_thresh[0], boxes_.offset);
}

SamplingTask BoxStages::sampling_task(const Candidates& candidates, const StepInfo& step) const {
  return make_sampling_task(candidates.matches.label, options_.batch_size_per_image,
                            options_.positive_fraction,
                            [&step](std::size_t image) { return step.rng(kRegionStream, image); });
}

BoxHead::Output BoxStages::output(const Features& features, const at::Tensor& rois,
                                  std::size_t stage, const NormMode& mode) const {
  const auto pooled = pool_(features.maps, rois, options_.head.pooler_resolution, mode);
  if (heads_.size() > 1 &&
      pooled.requires_grad())  // the pyramid's gradient is the mean over the stages
    pooled.register_hook([share = 1.0 / static_cast<double>(heads_.size())](
                             const at::Tensor& gradient) { return gradient * share; });
  return heads_[stage](pooled, mode);
}

SampledRegions BoxStages::with_shared(SampledRegions regions, const Features& features) const {
  if (pool_.has_last_stage())
    regions.pooled =
        pool_(features.maps, regions.rois, options_.head.pooler_resolution, features.mode);
  return regions;
}

SampledRegions BoxStages::refined(std::size_t stage, const at::Tensor& deltas,
                                  const SampledRegions& regions,
                                  const std::vector<Truth>& truths) const {
  const at::NoGradGuard no_grad;
  const auto& samples = regions.samples;
  const auto sizes = pack_of(truths)->sizes.index_select(0, samples.image);
  const auto boxes = decode_clipped_boxes(heads_[stage], deltas, regions.rois, sizes);
  const auto images = std::ssize(truths), longest = samples.longest();
  const auto table = at::zeros({images * longest, 4}, boxes.options())
                         .index_copy_(0, samples.slots, boxes)
                         .view({images, longest, 4});
  const auto side = table.unbind(2);
  const auto candidates =
      match_regions(table, (side[2] > side[0]) & (side[3] > side[1]),  // drops empty boxes
                    truths, options_.fg_iou_thresh[stage + 1], boxes_.offset);
  const auto all = images * longest;  // all are taken, so none is sampled at random
  return select_sampled(candidates, sample_candidates({{candidates.matches.label, all, all,
                                                        [](std::size_t) { return Rng{0}; }}})[0]);
}

LossSums BoxStages::losses(const Features& features, SampledRegions regions,
                           const std::vector<Truth>& truths, const StepInfo& step) const {
  LossSums losses;
  for (std::size_t stage = 0; stage < heads_.size(); ++stage) {
    const auto found = regions.pooled.defined()
                           ? heads_[stage](regions.pooled, features.mode)
                           : output(features, regions.rois, stage, features.mode);
    const auto number = heads_.size() > 1 ? "_stage" + std::to_string(stage) : "";
    for (auto& loss : heads_[stage].losses(found, regions, truths, step, number))
      losses.push_back(std::move(loss));
    if (stage + 1 < heads_.size()) regions = refined(stage, found.deltas, regions, truths);
  }
  return losses;
}

std::vector<Found> BoxStages::detect(const Features& features,
                                     const std::vector<at::Tensor>& proposals,
                                     const DetectionOptions& detection) const {
  auto rois = as_rois(proposals);
  std::vector<at::Tensor> sizes;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const auto& [height, width] = features.sizes[i];
    sizes.push_back(at::tensor({width, height, width, height}, rois.options())
                        .expand({proposals[i].size(0), 4}));
  }
  const auto limits = at::cat(sizes);
  at::Tensor all_scores, deltas;
  for (std::size_t stage = 0; stage < heads_.size(); ++stage) {
    if (stage > 0)
      rois = at::cat(
          {rois.narrow(1, 0, 1), decode_clipped_boxes(heads_[stage - 1], deltas, rois, limits)}, 1);
    const auto found = output(features, rois, stage, NormMode{});
    const auto scores = heads_[stage].scores(found);
    all_scores = stage > 0 ? all_scores + scores : scores;
    deltas = found.deltas;
  }
  if (heads_.size() > 1) all_scores = all_scores / static_cast<double>(heads_.size());

  std::vector<Found> found;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const auto count = proposals[i].size(0);
    const auto raw = candidates(all_scores.narrow(0, first, count), deltas.narrow(0, first, count),
                                rois.narrow(0, first, count).narrow(1, 1, 4), detection);
    if (features.intermediates) features.intermediates->raw.push_back(raw);
    found.push_back(best_detections(raw, features.sizes[i], boxes_.offset, detection));
    first += count;
  }
  return found;
}

Found BoxStages::candidates(const at::Tensor& scores, const at::Tensor& deltas,
                            const at::Tensor& proposals, const DetectionOptions& detection) const {
  const auto boxes = heads_.back().boxes(deltas, proposals);
  // (D, 2)
  const auto good = ((scores > detection.score_thresh) & at::isfinite(scores)).nonzero();
  const auto row = good.select(1, 0), label = good.select(1, 1);
  const auto group = boxes.size(1) > 1 ? label : at::zeros_like(label);
  return {boxes.index({row, group}), scores.index({row, label}), label};
}

FoundNodes BoxStages::detect(const std::vector<onnx::Value>& maps, const ProposalNodes& proposals,
                             const onnx::Value& limits, const DetectionOptions& detection) const {
  refuse_soft_nms(detection);
  auto& g = *limits.graph;
  const auto in = g.in("box_stages");
  const auto own_limits =
      onnx::unsqueeze(onnx::gather(limits, proposals.regions.images, 0), {1});  // (P, 1, 4)
  auto regions = proposals.regions;
  onnx::Value scores, deltas;
  for (std::size_t stage = 0; stage < heads_.size(); ++stage) {
    if (stage > 0)
      regions.boxes = onnx::squeeze(
          clip_boxes(heads_[stage - 1].boxes(deltas, regions.boxes), own_limits), {1});
    const auto found = heads_[stage](pool_(maps, regions, options_.head.pooler_resolution));
    const auto own = heads_[stage].scores(found);
    scores = stage > 0 ? scores + own : own;
    deltas = found.deltas;
  }
  if (heads_.size() > 1) scores = scores / static_cast<double>(heads_.size());

  // (P, B, 4) and (P, K), then as tables of the images: (N, R, B, 4) and (N, R, K)
  const auto boxes = clip_boxes(heads_.back().boxes(deltas, regions.boxes), own_limits);
  const auto classes = heads_.back().classes();
  const bool own_boxes = !options_.head.cls_agnostic_bbox_reg && classes > 1;
  const auto good =
      mask_small_boxes(boxes, onnx::where(scores > detection.score_thresh, scores, -1), detection);
  const auto table = [&](const onnx::Value& rows, const onnx::Ints& sides, double none) {
    const auto shape = onnx::concat({proposals.table, g.ints(sides)}, 0);
    return onnx::scatter_nd(onnx::filled(shape, none, onnx::Type::f32), proposals.places, rows);
  };
  const auto all_scores = table(good, {classes}, -1);
  const auto all_boxes = table(boxes, {own_boxes ? classes : 1, 4}, 0);
  const auto by_class = onnx::transpose(all_scores, {0, 2, 1});  // (N, K, R)
  onnx::Value kept;                                              // (S, 2): image, index in (R K)
  const auto column = [](const onnx::Value& x, std::int64_t at) {
    return onnx::slice(x, 1, at, at + 1);
  };
  if (own_boxes) {  // treats each class of an image as an image
    const auto longest = onnx::side_of(by_class, 2);
    const auto apart = onnx::concat(
        {onnx::side_of(by_class, 0) * static_cast<double>(classes), longest, g.ints({4})}, 0);
    const auto chosen =
        batched_nms(onnx::reshape(onnx::transpose(all_boxes, {0, 2, 1, 3}), apart),
                    onnx::unsqueeze(onnx::reshape(by_class, onnx::slice(apart, 0, 0, 2)), {1}),
                    detection.nms_thresh, boxes_.offset, detection.detections_per_img);
    const auto group = column(chosen, 0);
    const auto count = g.scalar(static_cast<double>(classes), onnx::Type::i64);
    kept =
        onnx::concat({group / count, column(chosen, 2) * count + onnx::remainder(group, count)}, 1);
  } else {
    const auto chosen = batched_nms(onnx::squeeze(all_boxes, {2}), by_class, detection.nms_thresh,
                                    boxes_.offset, detection.detections_per_img);
    kept = onnx::concat(
        {column(chosen, 0), column(chosen, 2) * static_cast<double>(classes) + column(chosen, 1)},
        1);
  }
  const auto flat = onnx::reshape(
      all_scores, onnx::concat({onnx::side_of(all_scores, 0),
                                onnx::side_of(all_scores, 1) * static_cast<double>(classes)},
                               0));
  const auto [best, places] = top_kept(flat, kept, detection.detections_per_img);
  const auto count = g.scalar(static_cast<double>(classes), onnx::Type::i64);
  const auto labels = onnx::remainder(places, count);
  const auto row = onnx::unsqueeze(places / count, {2});
  const auto index = own_boxes ? onnx::concat({row, onnx::unsqueeze(labels, {2})}, 2) : row;
  const auto chosen =
      onnx::gather_nd(own_boxes ? all_boxes : onnx::squeeze(all_boxes, {2}), index, 1);
  return {chosen, best, labels};
}

}  // namespace millrace
