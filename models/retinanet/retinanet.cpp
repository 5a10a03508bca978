// RetinaNet (Lin et al. 2017b): one stage, dense heads on P3..P7, focal loss. Shapes: N images, T
// anchors in all, K classes (+ 1 if a background comes first).
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sigmoid.h>

#include <algorithm>
#include <cmath>

#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/layers/layers.h"
#include "millrace/models/layers/truth_pack.h"
#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/sampling.h"
#include "millrace/models/retinanet/options.h"

namespace millrace {
namespace {

/// The dense head of classes or of boxes: convolutions shared by all levels, then `values` numbers
/// for each anchor. Parameters are named as in torchvision.
class DenseHead {
 public:
  /// Declares conv.0, conv.1 ... and the layer `name` under `scope`; the last layer's bias starts
  /// at `bias`.
  DenseHead(const Scope& scope, const char* name, const RetinaNetOptions& options,
            std::int64_t values, double bias)
      : values_(values) {
    const auto channels = options.pyramid.out_channels;
    const Init small{Init::Kind::normal, 0.01};
    for (std::int64_t i = 0; i < options.num_convs; ++i) {
      const auto place = scope / "conv" / i;
      convs_.emplace_back(place / 0, place / 1, Conv2d::Shape{channels, channels, 3},
                          NormOptions{.kind = options.norm}, 1, small);
    }
    last_ = Conv2d(scope / name, {channels, options.anchors.cell_count() * values, 3}, small);
    const at::NoGradGuard no_grad;
    last_.bias.fill_(bias);
  }

  /// Takes maps (N, C, H_l, W_l); returns (N, T, values), with T by level, y, x, cell.
  at::Tensor operator()(const std::vector<at::Tensor>& maps) const {
    auto levels = maps;
    for (const auto& conv : convs_)
      levels = conv(levels, NormMode{.training = true}, Activation::relu);
    levels = last_(levels);
    // The maps are channels last in memory, so that this view needs no copy.
    for (auto& level : levels)
      level = level.permute({0, 2, 3, 1}).reshape({level.size(0), -1, values_});
    return at::cat(levels, 1).to(at::kFloat);
  }

  /// Takes a map; returns (N, T_l, values).
  onnx::Value operator()(const onnx::Value& map) const {
    auto x = map;
    for (const auto& conv : convs_) x = conv(x, {.activation = Activation::relu});
    return onnx::reshape(onnx::transpose(last_(x), {0, 2, 3, 1}), {0, -1, values_});
  }

 private:
  std::vector<ConvNorm> convs_;
  Conv2d last_;
  std::int64_t values_;
};

class RetinaNet final : public PyramidDetector {
 public:
  using Options = RetinaNetOptions;

  RetinaNet(const RetinaNetOptions& options, const ModelContext& context)
      : PyramidDetector(options, options.p6_from, /*mask_paste=*/{}, context),
        options_(options),
        coder_(options.boxes.coder()),
        own_classes_(std::ssize(context.classes)),
        first_(options.background == Background::first ? 1 : 0),
        anchors_(options.anchors, /*first_stride=*/8),
        classes_(root() / "head" / "classification_head", "cls_logits", options,
                 std::ssize(context.classes) + first_,
                 -std::log((1 - options.prior_prob) / options.prior_prob)),
        deltas_(root() / "head" / "regression_head", "bbox_reg", options, 4, 0) {
    (root() / "head" / "classification_head")
        .set_classes("cls_logits", {1, first_ == 1 ? Background::first : Background::none,
                                    options.anchors.cell_count()});
  }

  bool gives_masks() const override { return false; }

 private:
  /// Runs the network on a batch of no images, whose maps give the sizes for the anchors.
  LossDivisors compute_counts(const Batch& batch, const StepInfo& step) const override {
    std::int64_t foreground = 0;
    if (is_by_batch()) {
      const auto [height, width] = std::pair(std::max(batch.height, step.padded.height),
                                             std::max(batch.width, step.padded.width));
      const auto maps = pyramid()({.height = height, .width = width}, {});
      const auto anchors = anchors_(maps, {height, width}).anchors;
      foreground = targets(anchors, truths_of(batch, maps[0].device())).foreground.rows.size(0);
    }
    return {count_of(std::ssize(batch.images), foreground)};
  }

  bool is_by_batch() const {
    return options_.loss_normalizer == RetinaNetOptions::Normalizer::batch;
  }

  /// Returns the count that divides the losses.
  LossDivisor count_of(std::int64_t images, std::int64_t foreground) const {
    return is_by_batch() ? LossDivisor{"foreground anchors", static_cast<double>(foreground)}
                         : LossDivisor{"images", static_cast<double>(images)};
  }

  /// The training targets of a batch's anchors.
  struct Targets {
    at::Tensor classes;            // (N, T) int64: each anchor's class for focal_loss_sum
    at::Tensor boxes;              // (F, 4): the ground truth of foreground anchors
    SampledCandidates foreground;  // all F foreground anchors
  };

  Targets targets(const at::Tensor& anchors, const std::vector<Truth>& truths) const {
    const auto pack = pack_of(truths);
    const auto [best, label] =
        match(pack->boxes, pack->begins, anchors.expand({std::ssize(truths), -1, 4}),
              {options_.bg_iou_thresh, options_.fg_iou_thresh, /*low_quality=*/true,
               options_.boxes.offset});
    auto classes = at::full_like(best, kBackground);
    classes.masked_fill_(label == -1, kIgnored);
    auto foreground = sample_candidates({{label, /*foreground=*/anchors.size(0), /*all=*/0,
                                          [](std::size_t) { return Rng{0}; }}})[0];
    const auto own = best.view(-1).index_select(0, foreground.rows);
    classes.view(-1).index_copy_(0, foreground.rows, pack->labels.index_select(0, own) + first_);
    return {classes, pack->boxes.index_select(0, own), std::move(foreground)};
  }

  LossSums head_losses(const Features& features, const std::vector<Truth>& truths,
                       const StepInfo& step) override {
    const auto logits = classes_(features.maps), deltas = deltas_(features.maps);
    const auto anchors = anchors_(features.maps, features.padded).anchors;
    const auto targets = this->targets(anchors, truths);
    const auto& rows = targets.foreground.rows;
    const auto images = static_cast<double>(truths.size());
    const auto foreground = static_cast<double>(rows.size(0));
    if (step.metrics) {
      step.metrics->add("anchors/fg", foreground, images);
      add_metrics(logits.detach(), targets, *step.metrics);
    }
    const auto references = anchors.index_select(0, rows.remainder(anchors.size(0))),
               own_deltas = deltas.reshape({-1, 4}).index_select(0, rows);
    const auto logits_of = logits.unbind(0), classes_of = targets.classes.unbind(0);
    at::Tensor classification, regression;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < truths.size(); ++i) {
      const auto count = targets.foreground.counts[i].foreground;
      const auto of_image = [&](const at::Tensor& all) { return all.narrow(0, first, count); };
      auto focal = focal_loss_sum(logits_of[i], classes_of[i], options_.focal);
      auto box = options_.loss.sum(coder_, of_image(references), of_image(own_deltas),
                                   of_image(targets.boxes));
      if (!is_by_batch()) {
        const double divisor = std::max(1.0, static_cast<double>(count));
        focal = focal / divisor;
        box = box / divisor;
      }
      classification = i > 0 ? classification + focal : focal;
      regression = i > 0 ? regression + box : box;
      first += count;
    }
    const auto divisor = count_of(std::ssize(truths), rows.size(0));
    return {{"loss_cls", classification, divisor}, {"loss_box_reg", regression, divisor}};
  }

  /// Adds accuracies of the logits (N, T, K): an anchor predicts a class if its probability is >
  /// 1/2.
  void add_metrics(const at::Tensor& logits, const Targets& targets, Metrics& metrics) const {
    const auto [best, own] = logits.max(2);
    const auto said = own.masked_fill(best <= 0, kBackground);
    const auto right = said == targets.classes;
    const auto& rows = targets.foreground.rows;
    const auto objects = said.view(-1).index_select(0, rows);
    const auto count = static_cast<double>(rows.size(0));
    const auto part = right.sum();
    metrics.add("anchors/accuracy", part, (targets.classes != kIgnored).sum());
    metrics.add("anchors/fg_accuracy", right.view(-1).index_select(0, rows).sum(),
                at::full_like(part, count));
    metrics.add("anchors/false_negatives", (objects == kBackground).sum(),
                at::full_like(part, count));
  }

  std::vector<Found> find(const Features& features) override {
    const auto scores = at::sigmoid(classes_(features.maps)), deltas = deltas_(features.maps);
    const auto grid = anchors_(features.maps, features.padded);
    std::vector<Found> found;
    for (std::int64_t i = 0; i < scores.size(0); ++i) {
      std::vector<at::Tensor> boxes, ratings, labels;
      std::int64_t first = 0;
      for (const auto count : grid.counts) {
        const auto best =
            candidates(grid.anchors.narrow(0, first, count), scores[i].narrow(0, first, count),
                       deltas[i].narrow(0, first, count));
        boxes.push_back(best.boxes);
        ratings.push_back(best.scores);
        labels.push_back(best.labels);
        first += count;
      }
      found.push_back(best_detections({at::cat(boxes), at::cat(ratings), at::cat(labels)},
                                      features.sizes[static_cast<std::size_t>(i)],
                                      options_.boxes.offset, options_.detection));
    }
    return found;
  }

  /// Returns the best pairs of anchor and class of one level: anchors (T_l, 4), scores (T_l, K),
  /// deltas (T_l, 4).
  Found candidates(const at::Tensor& anchors, const at::Tensor& scores,
                   const at::Tensor& deltas) const {
    const auto own = scores.narrow(1, first_, scores.size(1) - first_);
    const auto pairs = (own > options_.detection.score_thresh).nonzero();  // (D, 2)
    const auto all = own.index({pairs.select(1, 0), pairs.select(1, 1)});
    const auto [best, order] = all.topk(std::min(options_.topk_candidates, all.size(0)));
    const auto kept = pairs.index_select(0, order);
    const auto anchor = kept.select(1, 0);
    return {coder_.decode(anchors.index_select(0, anchor), deltas.index_select(0, anchor)), best,
            kept.select(1, 1)};
  }

  FoundNodes find_in_graph(const FeatureNodes& features) const override {
    std::vector<onnx::Value> boxes, scores, labels;
    const auto grids = anchors_(features.maps, features.padded);
    for (std::size_t level = 0; level < grids.size(); ++level) {
      const auto logits = classes_(features.maps[level]);
      const auto best =
          candidates(grids[level], onnx::apply("Sigmoid", logits), deltas_(features.maps[level]));
      boxes.push_back(best.boxes);
      scores.push_back(best.scores);
      labels.push_back(best.labels);
    }
    return best_detections(
        {onnx::concat(boxes, 1), onnx::concat(scores, 1), onnx::concat(labels, 1)}, features.limits,
        options_.boxes.offset, own_classes_, options_.detection);
  }

  /// Adds the nodes of `candidates`: anchors (T_l, 4), scores (N, T_l, K), deltas (N, T_l, 4).
  FoundNodes candidates(const onnx::Value& anchors, const onnx::Value& scores,
                        const onnx::Value& deltas) const {
    auto& g = *scores.graph;
    const auto in = g.in("candidates");
    const auto own = first_ > 0 ? onnx::slice(scores, 2, first_, first_ + own_classes_) : scores;
    const auto above = onnx::where(own > options_.detection.score_thresh, own, -1);
    const auto all = onnx::reshape(above, {0, -1});
    const auto [best, places] = onnx::top_k(
        all, onnx::minimum(onnx::side_of(all, 1), static_cast<double>(options_.topk_candidates)));
    const auto count = g.scalar(static_cast<double>(own_classes_), onnx::Type::i64);
    const auto anchor = places / count;  // (N, k)
    return {coder_.decode(onnx::gather(anchors, anchor, 0),
                          onnx::gather_nd(deltas, onnx::unsqueeze(anchor, {2}), 1)),
            best, onnx::remainder(places, count)};
  }

  RetinaNetOptions options_;
  BoxCoder coder_;
  std::int64_t own_classes_;
  std::int64_t first_;
  AnchorGrids anchors_;
  DenseHead classes_, deltas_;
};

MILLRACE_REGISTER(register_detector<RetinaNet>(
    "retinanet", "RetinaNet on a ResNet feature pyramid: one stage, focal loss"));

}  // namespace
}  // namespace millrace
