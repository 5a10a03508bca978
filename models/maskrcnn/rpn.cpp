#include "millrace/models/maskrcnn/rpn.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "millrace/base/options.h"
#include "millrace/models/layers/losses.h"
#include "millrace/models/layers/matrix_product.h"
#include "millrace/models/layers/truth_pack.h"
#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/roi_align.h"
#include "millrace/models/ops/upload.h"

namespace millrace {
namespace {

constexpr std::uint64_t kAnchorStream = 1;  // stream of the step's random numbers

/// Returns (N, T) bool, true for anchors (T, 4) within `margin` pixels of each image. `sizes` (N,
/// 4): width, height, ...
at::Tensor inside(const at::Tensor& anchors, const at::Tensor& sizes, double margin) {
  const auto side = anchors.unbind(1);
  const auto end = (sizes + margin).unsqueeze(2).unbind(1);  // (N, 1) each
  return (side[0] >= -margin) & (side[1] >= -margin) & (side[2] < end[0]) & (side[3] < end[1]);
}

/// The positions of anchors, (R) int64 each.
struct AnchorPlaces {
  at::Tensor image, level, y, x;
  at::Tensor height, width;  // of the level's map
  at::Tensor cell;           // index among the anchors of that pixel
};

/// `anchors` (R) int64: indices among the anchors of all images.
AnchorPlaces places_of(const at::Tensor& anchors, const std::vector<at::Tensor>& maps,
                       std::int64_t cells) {
  std::vector<std::int64_t> ends, begins, heights, widths;
  std::int64_t pixels = 0;
  for (const auto& map : maps) {
    begins.push_back(pixels);
    heights.push_back(map.size(2));
    widths.push_back(map.size(3));
    ends.push_back(pixels += heights.back() * widths.back());
  }
  const auto tables =
      uploaded({at::tensor(ends), at::tensor(begins), at::tensor(heights), at::tensor(widths)},
               anchors.device());
  const auto quotient = [](const at::Tensor& a, const auto& b) { return a.div(b, "floor"); };
  const auto pixel = quotient(anchors, cells), of_image = pixel.remainder(pixels);
  const auto level = at::bucketize(of_image, tables[0], /*out_int32=*/false, /*right=*/true);
  const auto of_level = [&](const at::Tensor& table) { return table.index_select(0, level); };
  const auto place = of_image - of_level(tables[1]), width = of_level(tables[3]);
  return {quotient(pixel, pixels), level, quotient(place, width),  place.remainder(width),
          of_level(tables[2]),     width, anchors.remainder(cells)};
}

/// Returns the 3 x 3 pixels around `places` of the maps (N, C, H_l, W_l), zeros beyond their edges,
/// (R, C, 3, 3), by ROIAlign's samples at the centres of pixels.
at::Tensor surroundings(const std::vector<at::Tensor>& maps, const AnchorPlaces& places) {
  const auto stride =
      at::bitwise_left_shift(1, places.level).unsqueeze(1);  // in pixels of the first map
  const auto boxes =
      at::stack({places.x - 1, places.y - 1, places.x + 2, places.y + 2}, 1) * stride;
  const auto rois = at::cat({places.image.unsqueeze(1), boxes}, 1).to(at::kFloat);
  const auto around = at::arange(-1, 2, places.level.options());
  const auto inside = [&](const at::Tensor& place, const at::Tensor& side) {
    const auto all = place.unsqueeze(1) + around;  // (R, 3)
    return (all >= 0) & (all < side.unsqueeze(1));
  };
  const auto is_inside =
      inside(places.y, places.height).unsqueeze(2) & inside(places.x, places.width).unsqueeze(1);
  return roi_align(maps, rois, places.level, {.height = 3, .width = 3, .sampling_ratio = 1}) *
         is_inside.unsqueeze(1);
}

bool predicts_samples_again(const Features& features) { return features.maps[0].is_cpu(); }

}  // namespace

void RpnOptions::describe(Options& o) {
  const Limits share{.min = 0, .max = 1}, count{.min = 1, .max = 1e6};
  anchors.describe(o);
  o.add("rpn.boundary_thresh", boundary_thresh,
        "maximum distance outside the image of trained anchors; negative = unlimited",
        {.unit = "px"});
  o.add("rpn.fg_iou_thresh", fg_iou_thresh, "IoU from which an anchor is foreground", share);
  o.add("rpn.bg_iou_thresh", bg_iou_thresh, "IoU below which an anchor is background", share);
  o.add("rpn.batch_size_per_image", batch_size_per_image, "anchors sampled per image", count);
  o.add("rpn.positive_fraction", positive_fraction,
        "maximum share of foreground among the sampled anchors", share);
  o.add("rpn.smooth_l1_beta", smooth_l1_beta, "smooth-L1 beta of the RPN's boxes; 0 = L1",
        {.min = 0});
  o.add("rpn.loss_normalizer", loss_normalizer,
        "divisor of the RPN losses: rpn.batch_size_per_image x images (batch), or the sampled "
        "anchors");
  o.add("rpn.pre_nms_top_n_train", pre_nms_top_n_train,
        "maximum proposals per level before NMS in training", count);
  o.add("rpn.pre_nms_top_n_test", pre_nms_top_n_test,
        "maximum proposals per level before NMS in detection", count);
  o.add("rpn.post_nms_top_n_train", post_nms_top_n_train,
        "maximum proposals per image after NMS in training", count);
  o.add("rpn.post_nms_top_n_test", post_nms_top_n_test,
        "maximum proposals per image after NMS in detection", count);
  o.add("rpn.nms_thresh", nms_thresh, "IoU threshold of the proposals' NMS", share);
  o.add("rpn.rank_by", rank_by,
        "score by which NMS ranks proposals: logit, or probability (torchvision; more ties)");
  o.add("rpn.min_size", min_size, "minimum side of a proposal (sides must exceed 0 in any case)",
        {.min = 0, .unit = "px"});
}

void RpnOptions::check(const Config& table) const {
  anchors.check(table);
  require(table, "rpn.bg_iou_thresh", bg_iou_thresh <= fg_iou_thresh,
          "must not exceed rpn.fg_iou_thresh");
}

Rpn::Rpn(const Scope& scope, const RpnOptions& options, const BoxOptions& boxes,
         std::int64_t channels, std::int64_t first_stride)
    : options_(options), coder_(boxes.coder()), anchors_(options.anchors, first_stride) {
  const auto cells = options.anchors.cell_count();
  const auto head = scope / "head";
  const Init small{Init::Kind::normal, 0.01};
  conv_ = Conv2d(head / "conv" / 0 / 0, {channels, channels, 3}, small);
  logits_ = Conv2d(head / "cls_logits", {channels, cells, 1}, small);
  deltas_ = Conv2d(head / "bbox_pred", {channels, cells * 4, 1}, small);
}

Rpn::Output Rpn::operator()(const Features& features) const {
  const at::AutoGradMode with_gradients(at::GradMode::is_enabled() &&
                                        !predicts_samples_again(features));
  // One convolution for both, which reads the maps once.
  auto predict = logits_;
  predict.weight = at::cat({logits_.weight, deltas_.weight});
  predict.bias = at::cat({logits_.bias, deltas_.bias});
  auto levels = predict(conv_(features.maps, Activation::relu));
  // The maps are channels last in memory, so that this view needs no copy.
  for (auto& level : levels)
    level = level.permute({0, 2, 3, 1}).flatten(1, 2);  // (N, H_l W_l, 5 A)
  const auto all = at::cat(levels, 1).to(at::kFloat);
  const auto n = all.size(0), cells = logits_.weight.size(0);
  auto grid = anchors_(features.maps, features.padded);
  return {.logits = all.narrow(2, 0, cells).reshape({n, -1}),
          .deltas = all.narrow(2, cells, 4 * cells).reshape({n, -1, 4}),
          .anchors = std::move(grid.anchors),
          .level_counts = std::move(grid.counts)};
}

Rpn::Predicted Rpn::sampled_predictions(const Features& features, const Output& output,
                                        const SampledCandidates& samples) const {
  if (!predicts_samples_again(features))
    return {output.logits.flatten().index_select(0, samples.rows),
            output.deltas.reshape({-1, 4}).index_select(
                0, samples.rows.index_select(0, samples.foreground))};
  const auto cells = logits_.weight.size(0);
  const auto places = places_of(samples.rows, features.maps, cells);
  const auto rows = [](const at::Tensor& values) {  // (R, C, H, W) -> (R, H W C)
    return values.permute({0, 2, 3, 1}).flatten(1);
  };
  const auto hidden =
      linear(rows(surroundings(features.maps, places)), rows(conv_.weight), conv_.bias).relu();
  const auto logits = linear(hidden, rows(logits_.weight), logits_.bias)
                          .gather(1, places.cell.unsqueeze(1))
                          .squeeze(1);
  // Uses all sampled anchors, so that the shape is constant, as oneDNN compiles a kernel for each
  // shape.
  const auto own = places.cell.index_select(0, samples.foreground).view({-1, 1, 1});
  const auto deltas = linear(hidden, rows(deltas_.weight), deltas_.bias)
                          .view({samples.rows.size(0), cells, 4})
                          .index_select(0, samples.foreground)
                          .gather(1, own.expand({-1, 1, 4}))
                          .squeeze(1);
  return {logits.to(at::kFloat), deltas.to(at::kFloat)};
}

Proposals Rpn::proposals(const Output& output, const std::vector<ImageSize>& sizes,
                         bool training) const {
  return millrace::proposals(
      output.logits.detach(), output.deltas.detach(), output.anchors, output.level_counts, sizes,
      {.before = training ? options_.pre_nms_top_n_train : options_.pre_nms_top_n_test,
       .after = training ? options_.post_nms_top_n_train : options_.post_nms_top_n_test,
       .threshold = options_.nms_thresh,
       .min_side = options_.min_size,
       .by_probability = options_.rank_by == RpnOptions::RankBy::probability,
       .coder = coder_});
}

ProposalNodes Rpn::proposals(const std::vector<onnx::Value>& maps, const onnx::Value& padded,
                             const onnx::Value& limits) const {
  auto& g = *padded.graph;
  const auto in = g.in("rpn");
  const auto grids = anchors_(maps, padded);
  std::vector<onnx::Value> level_logits, level_deltas, level_anchors, level_numbers;
  for (std::size_t level = 0; level < maps.size(); ++level) {
    const auto hidden = conv_(maps[level], {.activation = Activation::relu});
    const auto by_anchor = [&](const onnx::Value& map, const onnx::Ints& values) {
      onnx::Ints shape{0, -1};
      shape.insert(shape.end(), values.begin(), values.end());
      return onnx::reshape(onnx::transpose(map, {0, 2, 3, 1}), shape);
    };
    const auto logits = by_anchor(logits_(hidden), {});
    const auto [best, places] = onnx::top_k(
        logits,
        onnx::minimum(onnx::side_of(logits, 1), static_cast<double>(options_.pre_nms_top_n_test)));
    level_logits.push_back(best);
    level_deltas.push_back(
        onnx::gather_nd(by_anchor(deltas_(hidden), {4}), onnx::unsqueeze(places, {2}), 1));
    level_anchors.push_back(onnx::gather(grids[level], places, 0));
    level_numbers.push_back(
        onnx::filled(onnx::side_of(places, 1), static_cast<double>(level), onnx::Type::i64));
  }
  auto scores = onnx::concat(level_logits, 1);
  if (options_.rank_by == RpnOptions::RankBy::probability) scores = onnx::apply("Sigmoid", scores);
  const auto boxes =
      clip_boxes(coder_.decode(onnx::concat(level_anchors, 1), onnx::concat(level_deltas, 1)),
                 onnx::unsqueeze(limits, {1}));  // (N, T, 4)
  const auto sides = sides_of_boxes(boxes);
  const auto enough = options_.min_size > 0 ? sides >= options_.min_size : sides > 0;
  const auto good = onnx::slice(enough, 2, 0, 1) && onnx::slice(enough, 2, 1, 2);  // (N, T, 1)

  // Levels are concatenated, each best first: NMS ranks by that order, without ties.
  const auto count = onnx::side_of(scores, 1);
  const auto rank = onnx::cast(count - onnx::range(count), onnx::Type::f32);  // (T)
  const auto level = g.constant(at::arange(std::ssize(maps), at::kLong).view({-1, 1}), "levels");
  const auto own = onnx::equal(onnx::concat(level_numbers, 0), level);  // (L, T)
  const auto ranks = onnx::where(own && onnx::transpose(good, {0, 2, 1}), rank, -1);
  const auto kept = onnx::gather(
      batched_nms(boxes, ranks, options_.nms_thresh, coder_.offset, options_.post_nms_top_n_test),
      g.ints({0, 2}), 1);

  constexpr double kNone = std::numeric_limits<float>::lowest();
  const auto none = onnx::filled(onnx::sides_of(scores, 0, 2), kNone, onnx::Type::f32);
  const auto left = onnx::scatter_nd(none, kept, onnx::gather_nd(scores, kept));
  const auto [best, places] =
      onnx::top_k(left, onnx::minimum(count, static_cast<double>(options_.post_nms_top_n_test)));
  const auto given = onnx::places_of(best > kNone);  // (P, 2)
  const auto image = onnx::squeeze(onnx::slice(given, 1, 0, 1), {1});
  const auto place = onnx::gather_nd(places, given);
  const auto index = onnx::concat({onnx::slice(given, 1, 0, 1), onnx::unsqueeze(place, {1})}, 1);
  return {{onnx::gather_nd(boxes, index), image}, given, onnx::sides_of(best, 0, 2)};
}

Matches Rpn::match_anchors(const at::Tensor& anchors, const std::vector<Truth>& truths) const {
  const auto pack = pack_of(truths);
  auto matches =
      match(pack->boxes, pack->begins, anchors.expand({std::ssize(truths), -1, 4}),
            {options_.bg_iou_thresh, options_.fg_iou_thresh, /*low_quality=*/true, coder_.offset});
  if (options_.boundary_thresh >= 0)
    matches.label.masked_fill_(inside(anchors, pack->sizes, options_.boundary_thresh).logical_not(),
                               -1);
  return matches;
}

SamplingTask Rpn::sampling_task(const Matches& matches, const StepInfo& step) const {
  return make_sampling_task(matches.label, options_.batch_size_per_image,
                            options_.positive_fraction,
                            [&step](std::size_t image) { return step.rng(kAnchorStream, image); });
}

LossSums Rpn::losses(const Features& features, const Output& output,
                     const std::vector<Truth>& truths, const Matches& matches,
                     const SampledCandidates& samples, const StepInfo& step) const {
  const auto sampled = samples.rows.size(0), foreground = samples.foreground.size(0);
  const auto predicted = sampled_predictions(features, output, samples);
  const auto &logits = predicted.logits, &deltas = predicted.deltas;
  const auto all_targets =
      at::zeros({sampled}, logits.options()).index_fill_(0, samples.foreground, 1);
  const auto images = static_cast<double>(truths.size());
  const LossDivisor divisor{"rpn anchors",
                            options_.loss_normalizer == RpnOptions::Normalizer::batch
                                ? static_cast<double>(options_.batch_size_per_image) * images
                                : static_cast<double>(sampled)};
  const auto objectness = binary_cross_entropy_sum(logits, all_targets);
  const auto regression = [&] {
    const auto rows = samples.rows.index_select(0, samples.foreground);
    const auto truth = matches.truth.view(-1).index_select(0, rows);
    const auto targets =
        coder_.encode(output.anchors.index_select(0, rows.remainder(output.anchors.size(0))),
                      pack_of(truths)->boxes.index_select(0, truth));
    return smooth_l1_sum(deltas, targets, options_.smooth_l1_beta);
  };
  const auto box = foreground == 0 ? deltas.sum() : regression();
  if (step.metrics) {
    const auto right = ((logits > 0) == (all_targets > 0)).sum();
    step.metrics->add("rpn/accuracy", right, at::full_like(right, sampled));
    step.metrics->add("rpn/fg", static_cast<double>(foreground), images);
    step.metrics->add("rpn/bg", static_cast<double>(sampled - foreground), images);
  }
  return {{"loss_objectness", objectness, divisor}, {"loss_rpn_box_reg", box, divisor}};
}

void add_recall(const std::vector<at::Tensor>& proposals, const std::vector<Truth>& truths,
                Metrics& metrics) {
  for (std::size_t i = 0; i < truths.size(); ++i) {
    const auto found =
        match(proposals[i], truths[i].boxes, {.bg_iou_thresh = 0.5, .fg_iou_thresh = 0.7}).label;
    const auto half = (found != 0).sum();
    const auto objects = at::full_like(half, found.size(0));
    metrics.add("rpn/recall50", half, objects);
    metrics.add("rpn/recall70", (found == 1).sum(), objects);
  }
}

}  // namespace millrace
