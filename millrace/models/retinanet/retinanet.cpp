// RetinaNet (Lin et al. 2017b): one stage, dense heads on P3..P7, focal loss.
// Shapes: N images, T anchors in all, K classes (+ 1 where a background comes first).
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sigmoid.h>

#include <algorithm>
#include <cmath>

#include "millrace/models/layers/layers.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/retinanet/options.h"

namespace millrace {
namespace {

/// The dense head of classes or of boxes; tensors are named as in torchvision: convolutions shared
/// by all levels, then `values` numbers for each anchor.
class DenseHead {
 public:
  /// Declares conv.0, conv.1 ... and the layer `name` under `scope`; the last layer's bias starts
  /// at `bias`.
  DenseHead(const Scope& scope, const char* name, const RetinaNetOptions& options,
            std::int64_t values, double bias)
      : values_(values) {
    const auto channels = options.pyramid.channels;
    const Init small{Init::Kind::normal, 0.01};
    for (std::int64_t i = 0; i < options.convs; ++i) {
      const auto place = scope / "conv" / i;
      convs_.emplace_back(place / 0, place / 1, Conv2d::Shape{channels, channels, 3},
                          NormOptions{.kind = options.norm}, 1, small);
    }
    last_ = Conv2d(scope / name, {channels, options.anchors.cell_count() * values, 3}, small);
    const at::NoGradGuard no_grad;
    last_.bias.fill_(bias);
  }

  /// Maps (N, C, H_l, W_l) -> (N, T, values), order of the T: level, y, x, cell
  at::Tensor operator()(const std::vector<at::Tensor>& maps) const {
    std::vector<at::Tensor> levels;
    for (const auto& map : maps) {
      auto x = map;
      for (const auto& conv : convs_) x = conv(x, NormPass{.training = true}, {.relu = true});
      // Channels last in memory, so that this view costs nothing.
      levels.push_back(last_(x).permute({0, 2, 3, 1}).reshape({map.size(0), -1, values_}));
    }
    return at::cat(levels, 1).to(at::kFloat);
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
      : PyramidDetector(options, options.top(), /*mask_paste=*/"", context),
        options_(options),
        coder_(options.boxes.coder()),
        first_(options.background == "first" ? 1 : 0),
        classes_(root() / "head" / "classification_head", "cls_logits", options,
                 std::ssize(context.classes) + first_,
                 -std::log((1 - options.prior) / options.prior)),
        deltas_(root() / "head" / "regression_head", "bbox_reg", options, 4, 0) {
    (root() / "head" / "classification_head")
        .set_classes("cls_logits", {1, first_ == 1 ? Background::first : Background::none,
                                    options.anchors.cell_count()});
  }

  bool gives_masks() const override { return false; }

 private:
  /// The anchors of each level, (T_l, 4).
  std::vector<at::Tensor> anchors(const Features& features) const {
    return options_.anchors(features.maps, features.padded, /*first_stride=*/8);
  }

  /// The class of each anchor for the focal loss, and the ground truth of the positive ones.
  struct Targets {
    at::Tensor classes;   // (T) int64
    at::Tensor positive;  // (F) int64, anchors
    at::Tensor truth;     // (F) int64
  };

  Targets targets(const at::Tensor& anchors, const Truth& truth) const {
    const auto [best, label] =
        match(truth.boxes, anchors,
              {options_.low, options_.high, /*low_quality=*/true, options_.boxes.offset});
    auto classes = at::full_like(best, kBackground);
    classes.masked_fill_(label == -1, kIgnored);
    const auto positive = (label == 1).nonzero().squeeze(1);
    const auto own = best.index_select(0, positive);
    classes.index_copy_(0, positive, truth.labels.index_select(0, own) + first_);
    return {classes, positive, own};
  }

  Losses head_losses(const Features& features, const std::vector<Truth>& truths,
                     const StepInfo& step) override {
    const auto logits = classes_(features.maps), deltas = deltas_(features.maps);
    const auto anchors = at::cat(this->anchors(features));
    std::vector<Targets> targets;
    double foreground = 0;
    for (const auto& truth : truths) {
      targets.push_back(this->targets(anchors, truth));
      foreground += static_cast<double>(targets.back().positive.size(0));
    }
    const auto images = static_cast<double>(truths.size());
    const bool by_batch = options_.normalizer == "batch";
    const double total =
        by_batch ? step.total("foreground anchors", foreground) : step.total("images", images);
    if (step.figures) {
      step.figures->add("anchors/fg", foreground, images);
      for (std::size_t i = 0; i < truths.size(); ++i)
        add_figures(logits[static_cast<std::int64_t>(i)].detach(), targets[i], *step.figures);
    }
    at::Tensor classification, regression;
    for (std::size_t i = 0; i < truths.size(); ++i) {
      const auto& [classes, positive, own] = targets[i];
      const auto image = static_cast<std::int64_t>(i);
      const double divisor = by_batch
                                 ? std::max(1.0, total)
                                 : std::max(1.0, static_cast<double>(positive.size(0))) * total;
      const auto focal = focal_loss_sum(logits[image], classes, options_.focal) / divisor;
      const auto box = options_.loss.sum(coder_, anchors.index_select(0, positive),
                                         deltas[image].index_select(0, positive),
                                         truths[i].boxes.index_select(0, own)) /
                       divisor;
      classification = i > 0 ? classification + focal : focal;
      regression = i > 0 ? regression + box : box;
    }
    return {{"loss_cls", classification}, {"loss_box_reg", regression}};
  }

  /// Accuracies of the logits (T, K) of an image: an anchor predicts a class of probability > 1/2.
  void add_figures(const at::Tensor& logits, const Targets& targets, Figures& figures) const {
    const auto [best, own] = logits.max(1);
    const auto said = own.masked_fill(best <= 0, kBackground);
    const auto right = said == targets.classes;
    const auto objects = said.index_select(0, targets.positive);
    const auto count = static_cast<double>(targets.positive.size(0));
    const auto part = right.sum();
    figures.add("anchors/accuracy", part, (targets.classes != kIgnored).sum());
    figures.add("anchors/fg_accuracy", right.index_select(0, targets.positive).sum(),
                at::full_like(part, count));
    figures.add("anchors/false_negatives", (objects == kBackground).sum(),
                at::full_like(part, count));
  }

  std::vector<Found> find(const Features& features) override {
    const auto scores = at::sigmoid(classes_(features.maps)), deltas = deltas_(features.maps);
    const auto anchors = this->anchors(features);
    std::vector<Found> found;
    for (std::int64_t i = 0; i < scores.size(0); ++i) {
      std::vector<at::Tensor> boxes, ratings, labels;
      std::int64_t first = 0;
      for (const auto& level : anchors) {
        const auto count = level.size(0);
        const auto best =
            candidates(level, scores[i].narrow(0, first, count), deltas[i].narrow(0, first, count));
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

  /// The best pairs of anchor and class of one level: anchors (T_l, 4), scores (T_l, K), deltas
  /// (T_l, 4).
  Found candidates(const at::Tensor& anchors, const at::Tensor& scores,
                   const at::Tensor& deltas) const {
    const auto own = scores.narrow(1, first_, scores.size(1) - first_);
    const auto pairs = (own > options_.detection.score_threshold).nonzero();  // (D, 2)
    const auto all = own.index({pairs.select(1, 0), pairs.select(1, 1)});
    const auto [best, order] = all.topk(std::min(options_.candidates, all.size(0)));
    const auto kept = pairs.index_select(0, order);
    const auto anchor = kept.select(1, 0);
    return {coder_.decode(anchors.index_select(0, anchor), deltas.index_select(0, anchor)), best,
            kept.select(1, 1)};
  }

  RetinaNetOptions options_;
  BoxCoder coder_;
  std::int64_t first_;
  DenseHead classes_, deltas_;
};

MILLRACE_REGISTER(register_detector<RetinaNet>(
    "retinanet", "RetinaNet on a ResNet feature pyramid: one stage, focal loss"));

}  // namespace
}  // namespace millrace
