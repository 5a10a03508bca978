// [model] type = "centers": objects as points (CenterNet, Zhou et al. 2019). For every cell of the
// finest pyramid level, the detector predicts one score per class that the cell is the centre of an
// object, and the distances to the object's sides. It has no anchors and no proposals; a peak of a
// class map is a detection. Shapes: N images, K classes, H x W cells of kStride x kStride pixels, F
// objects, D detections.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include <millrace/models/layers/layers.h>
#include <millrace/models/layers/losses.h>
#include <millrace/models/pyramid_detector.h>

namespace {

using namespace millrace;

constexpr std::int64_t kStride = 4;  // pixels per cell of P2

/// The options of every pyramid detector (backbone, pixels, NMS, ...) and those of this detector.
struct CentersOptions : PyramidDetectorOptions {
  std::int64_t channels = 64;
  double prior_prob = 0.01;
  double box_weight = 1;

  void describe(Options& o) {
    PyramidDetectorOptions::describe(o);
    o.add("head.channels", channels, "channels of the heads' hidden layer", {.min = 8, .max = 1024})
        .affects(WeightEffect::tensors);
    o.add("head.prior_prob", prior_prob, "initial probability of every centre",
          {.min = 1e-6, .max = 0.5});
    o.add("head.box_weight", box_weight, "weight of the box loss relative to the centre loss",
          {.min = 0});
  }
};

/// A 3x3 convolution, ReLU, and a 1x1 convolution with `out` outputs per cell.
class Head {
 public:
  Head(const Scope& scope, const CentersOptions& options, std::int64_t out, double bias)
      : hidden_(scope / 0, {options.pyramid.out_channels, options.channels, 3}, {Init::Kind::he}),
        last_(scope / 1, {options.channels, out, 1}, {Init::Kind::normal, 0.01}) {
    const at::NoGradGuard no_grad;
    last_.bias.fill_(bias);
  }

  /// Maps [N, C, H, W] to [N, out, H, W]; the result is fp32 for any precision of the convolutions.
  at::Tensor operator()(const at::Tensor& map) const {
    return last_(hidden_(map, {.activation = Activation::relu})).to(at::kFloat);
  }

 private:
  Conv2d hidden_, last_;
};

/// The training targets of a batch, on the device of its ground truth.
struct Targets {
  at::Tensor heat;  // [N, K, H, W]: 1 in the cell of a centre, decreasing around it
  // [F] int64 image index; [F] int64 cell index y * W + x; [F, 4] boxes in pixels.
  at::Tensor image, place, boxes;
};

/// Returns the cell of each box centre along one axis, [F] int64 in [0, cells), from the boxes'
/// lower and upper coordinates [F].
at::Tensor cells_of(const at::Tensor& low, const at::Tensor& high, std::int64_t cells) {
  return ((low + high) / (2 * kStride)).to(at::kLong).clamp(0, cells - 1);
}

/// Returns Gaussians along one axis around the objects' centres, [F, cells], with standard
/// deviations proportional to the objects' sizes along the axis [F].
at::Tensor bells(const at::Tensor& centre, const at::Tensor& width, std::int64_t cells) {
  const auto deviation = (width / (9 * kStride)).clamp_min(0.5).unsqueeze(1);
  const auto away = (at::arange(cells, width.options()) - centre.unsqueeze(1)).abs();
  const auto bell = (-0.5 * (away / deviation).square()).exp();
  return at::where(away <= 3 * deviation, bell, 0);
}

Targets targets_of(const std::vector<Truth>& truths, std::int64_t classes, std::int64_t height,
                   std::int64_t width) {
  const auto images = std::ssize(truths);
  std::vector<at::Tensor> image, labels, boxes;
  for (std::int64_t i = 0; i < images; ++i) {
    const auto& truth = truths[static_cast<std::size_t>(i)];
    image.push_back(at::full_like(truth.labels, i));
    labels.push_back(truth.labels);
    boxes.push_back(truth.boxes);
  }
  Targets targets{.image = at::cat(image), .boxes = at::cat(boxes)};
  const auto side = targets.boxes.unbind(1);
  const auto x = cells_of(side[0], side[2], width), y = cells_of(side[1], side[3], height);
  targets.place = y * width + x;

  const auto bell = bells(y, side[3] - side[1], height).unsqueeze(2) *
                    bells(x, side[2] - side[0], width).unsqueeze(1);  // [F, H, W]
  const auto map = (targets.image * classes + at::cat(labels)).view({-1, 1, 1});
  targets.heat = at::zeros({images * classes, height, width}, bell.options())
                     .scatter_reduce_(0, map.expand_as(bell), bell, "amax")
                     .view({images, classes, height, width});
  return targets;
}

/// Returns boxes [F, 4] in pixels from cells [F] and the distances [F, 4] to the left, top, right
/// and bottom edges, given as logarithms in units of strides.
at::Tensor boxes_at(const at::Tensor& place, const at::Tensor& distances, std::int64_t width) {
  const auto x = (place.remainder(width).to(at::kFloat) + 0.5) * kStride;
  const auto y = (place.div(width, "floor").to(at::kFloat) + 0.5) * kStride;
  const auto d = distances.clamp_max(6).exp() * kStride;  // at most 400 strides
  return at::stack({x - d.select(1, 0), y - d.select(1, 1), x + d.select(1, 2), y + d.select(1, 3)},
                   1);
}

class Centers final : public PyramidDetector {
 public:
  using Options = CentersOptions;

  Centers(const CentersOptions& options, const ModelContext& context)
      : PyramidDetector(options, FpnTop::pool, /*mask_paste=*/{}, context),
        options_(options),
        classes_(std::ssize(context.classes)),
        centers_(root() / "centers", options, classes_,
                 -std::log((1 - options.prior_prob) / options.prior_prob)),
        sides_(root() / "sides", options, 4, /*bias=*/1) {
    // Each row of the last layer is a class. Weights for different classes, or classes in a
    // different order, are matched by class name.
    (root() / "centers").set_classes("1", {.values = 1});
  }

  bool gives_masks() const override { return false; }

 private:
  /// Returns losses as sums over the objects. The trainer divides them and minimises their sum.
  LossSums head_losses(const Features& features, const std::vector<Truth>& truths,
                       const StepInfo&) override {
    const auto& map = features.maps.front();
    const auto logits = centers_(map), sides = sides_(map);
    const auto targets = targets_of(truths, classes_, map.size(2), map.size(3));
    const LossDivisor objects{"objects", static_cast<double>(targets.boxes.size(0))};

    // Focal loss with a lower weight for cells near a centre.
    const auto p = at::sigmoid(logits);
    const auto is_centre = targets.heat == 1;
    const auto found = (1 - p).square() * at::log_sigmoid(logits);
    const auto quiet = (1 - targets.heat).pow(4) * p.square() * at::log_sigmoid(-logits);
    const auto heat = -at::where(is_centre, found, quiet).sum();

    const auto flat = sides.flatten(2).transpose(1, 2);  // [N, H * W, 4]
    const auto chosen = flat.index({targets.image, targets.place});
    const auto box = giou_loss_sum(boxes_at(targets.place, chosen, map.size(3)), targets.boxes);
    return {{"loss_centers", heat, objects}, {"loss_sides", options_.box_weight * box, objects}};
  }

  /// Returns the peaks of the class maps, best first, in pixels of the network's input.
  std::vector<Found> find(const Features& features) override {
    const auto& map = features.maps.front();
    const auto p = at::sigmoid(centers_(map)), sides = sides_(map);
    const auto peaks = p * (at::max_pool2d(p, {3, 3}, {1, 1}, {1, 1}) == p);
    const auto cells = map.size(2) * map.size(3);
    std::vector<Found> result;
    for (std::int64_t i = 0; i < map.size(0); ++i) {
      const auto all = peaks[i].flatten();  // [K * H * W]
      const auto [best, at] = at::topk(all, std::min<std::int64_t>(all.size(0), 300));
      const auto good = (best > options_.detection.score_thresh).nonzero().squeeze(1);
      const auto scores = best.index_select(0, good), where = at.index_select(0, good);
      const auto place = where.remainder(cells);
      const auto distances = sides[i].flatten(1).transpose(0, 1).index_select(0, place);
      const auto& size = features.sizes[static_cast<std::size_t>(i)];
      result.push_back(best_detections({boxes_at(place, distances, map.size(3)), scores,
                                        where.div(cells, "floor").to(at::kLong)},
                                       size, /*offset=*/0, options_.detection));
    }
    return result;
  }

  CentersOptions options_;
  std::int64_t classes_;
  Head centers_, sides_;
};

MILLRACE_REGISTER(
    register_detector<Centers>("centers", "objects as points (CenterNet): one-stage, anchor-free"));

}  // namespace
