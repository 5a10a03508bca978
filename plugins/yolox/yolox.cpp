#include "yolox.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include <millrace/models/layers/cells.h>
#include <millrace/models/layers/losses.h>
#include <millrace/models/layers/pixels.h>
#include <millrace/models/layers/results.h>
#include <millrace/models/onnx/operations.h>
#include <millrace/models/ops/box_formats.h>
#include <millrace/models/ops/nms.h>
#include <millrace/models/training_checks.h>

namespace millrace::yolox {
namespace {

constexpr double kPadding = 114;  // pixel value around the images
constexpr double kBoxWeight = 5;  // weight of the IoU loss
constexpr double kNormEpsilon = 1e-3, kNormMomentum = 0.03;
constexpr std::int64_t kSizeStep = 32;   // in pixels
constexpr std::int64_t kSizeSteps = 10;  // training steps per size
constexpr std::uint64_t kSizeStream = 0x59584F;

/// Subtracts the padding value as the mean, so that the zeros with which `normalize` pads become
/// this value when it is added again. This is exact, since pixels are integers.
const PixelOptions kPixels{ChannelOrder::bgr, {kPadding, kPadding, kPadding}, {1, 1, 1}};

NetworkOptions network_of(const YoloxOptions& options) {
  return {options.depth,
          options.width,
          {options.depthwise,
           {.kind = options.norm, .epsilon = kNormEpsilon, .momentum = kNormMomentum}}};
}

/// Reshapes (N, V, H, W) to (N, H W, V).
at::Tensor by_cell(const at::Tensor& map) {
  return map.permute({0, 2, 3, 1}).reshape({map.size(0), -1, map.size(1)});
}
onnx::Value by_cell(const onnx::Value& map, std::int64_t values) {
  return onnx::reshape(onnx::transpose(map, {0, 2, 3, 1}), {0, -1, values});
}

/// Returns the height of the step's batches, in units of 32 pixels; the same on all ranks.
std::int64_t size_of_step(const Options::Ints& range, const StepInfo& step) {
  Rng rng{step.seed, static_cast<std::uint64_t>(step.step / kSizeSteps), kSizeStream};
  return rng.between(range[0], range[1]);
}

/// Returns the sum of 1 - IoU^2 of boxes and targets (F, 4), given as centre and sides.
at::Tensor iou_loss_sum(const at::Tensor& boxes, const at::Tensor& targets) {
  const auto centre = [](const at::Tensor& of) { return of.narrow(1, 0, 2); };
  const auto sides = [](const at::Tensor& of) { return of.narrow(1, 2, 2); };
  const auto area = [&](const at::Tensor& of) { return sides(of).prod(1); };
  const auto low =
      at::maximum(centre(boxes) - sides(boxes) / 2, centre(targets) - sides(targets) / 2);
  const auto high =
      at::minimum(centre(boxes) + sides(boxes) / 2, centre(targets) + sides(targets) / 2);
  const auto meet = (low < high).all(1).to(boxes.scalar_type());
  const auto common = (high - low).prod(1) * meet;
  const auto iou = common / (area(boxes) + area(targets) - common + 1e-16);
  return (1 - iou.square()).sum();
}

/// Encodes boxes (F, 4), centre and sides in pixels, as targets (F, 4) of the head in cells with
/// `corners` (F, 2) and `strides` (F), in the format of Predictions::boxes.
at::Tensor encoded(const at::Tensor& boxes, const at::Tensor& corners, const at::Tensor& strides) {
  const auto in_strides = boxes / strides.unsqueeze(1);
  return at::cat({in_strides.narrow(1, 0, 2) - corners, (in_strides.narrow(1, 2, 2) + 1e-8).log()},
                 1);
}

}  // namespace

Yolox::Yolox(const YoloxOptions& options, const ModelContext& context)
    : options_(options),
      classes_(std::ssize(context.classes)),
      root_(parameters_, context.seed, context.device, "", !context.awaits_weights),
      pyramid_(root_ / "backbone", network_of(options)) {
  for (std::int64_t level = 0; level < std::ssize(kStrides); ++level)
    heads_.emplace_back(root_ / "head", level, network_of(options), classes_);
}

std::vector<std::string> Yolox::check_facts(const TrainingFacts& facts) const {
  require_objects(facts);
  if (options_.norm == Norm::bn)
    if (auto warning = norm_by_part_warning("model.norm is", facts)) return {*std::move(warning)};
  return {};
}

at::Tensor Yolox::pixels_of(const Batch& batch, cv::Size padded) const {
  return normalize(batch, kPixels, root_.device(), padded).add_(kPadding);
}

Outputs Yolox::outputs(const at::Tensor& pixels, const NormMode& mode) const {
  const auto features = pyramid_(pixels, mode);
  std::vector<at::Tensor> boxes, objects, classes;
  for (std::size_t level = 0; level < heads_.size(); ++level) {
    const auto predictions = heads_[level](features[level], mode);
    boxes.push_back(by_cell(predictions.boxes));
    objects.push_back(by_cell(predictions.objects).squeeze(2));
    classes.push_back(by_cell(predictions.classes));
  }
  const auto all = [](const std::vector<at::Tensor>& levels) {
    return at::cat(levels, 1).to(at::kFloat);
  };
  return {all(boxes), all(objects), all(classes)};
}

LossSums Yolox::compute_losses(const Batch& batch, const StepInfo& step) {
  auto pixels = pixels_of(batch, step.padded);
  auto truths = truths_of(batch);
  if (!options_.random_size.empty() && !step.without_training) {
    const auto height = pixels.size(2), width = pixels.size(3);
    const auto size = size_of_step(options_.random_size, step);
    const auto new_height = size * kSizeStep, new_width = size * width / height * kSizeStep;
    pixels = at::upsample_bilinear2d(pixels, {new_height, new_width}, /*align_corners=*/false);
    const auto x = static_cast<double>(new_width) / static_cast<double>(width),
               y = static_cast<double>(new_height) / static_cast<double>(height);
    for (auto& truth : truths) truth.boxes = truth.boxes * at::tensor({x, y, x, y}, at::kFloat);
  }
  return losses_of(pixels, truths, step);
}

LossSums Yolox::losses_of(const at::Tensor& pixels, const std::vector<Truth>& truths,
                          const StepInfo& step) const {
  const NormMode mode{.training = !step.without_training, .ranks = step.ranks};
  const auto all = outputs(pixels, mode);
  const auto device = pixels.device();
  const auto grid = Grid::of(pixels.size(2), pixels.size(3), device);

  std::vector<at::Tensor> boxes, labels;
  std::vector<std::int64_t> counts;
  for (const auto& truth : truths) {
    boxes.push_back(truth.boxes);
    labels.push_back(truth.labels);
    counts.push_back(truth.labels.size(0));
  }
  const auto own_boxes = by_centre(at::cat(boxes)), own_labels = at::cat(labels);
  const Outputs predicted{decoded(all.boxes.detach(), grid.corners, grid.strides),
                          all.objects.detach(), all.classes.detach()};
  const auto [rows, objects, ious] = assign(predicted, grid, own_boxes, own_labels, counts);
  const auto count = static_cast<double>(rows.size(0));
  const LossDivisor divisor{"foreground cells", count};
  if (step.metrics)
    step.metrics->add("cells/object", count, static_cast<double>(own_labels.size(0)));

  const auto there = [&](const at::Tensor& table) {
    return table.to(device).index_select(0, objects);
  };
  const auto targets = there(own_boxes);
  const auto cells = rows.remainder(grid.strides.size(0));
  const auto corners = grid.corners.index_select(0, cells),
             strides = grid.strides.index_select(0, cells);
  const auto foreground_boxes = all.boxes.view({-1, 4}).index_select(0, rows);
  const auto is_object = at::zeros_like(predicted.objects).view(-1).index_fill_(0, rows, 1);
  const auto logits = all.classes.view({-1, classes_}).index_select(0, rows);
  const auto class_target = at::zeros_like(logits.detach())
                                .scatter_(1, there(own_labels).unsqueeze(1), ious.unsqueeze(1));

  LossSums losses{
      {"loss_iou", kBoxWeight * iou_loss_sum(decoded(foreground_boxes, corners, strides), targets),
       divisor},
      {"loss_obj", binary_cross_entropy_sum(all.objects.view(-1), is_object), divisor},
      {"loss_cls", binary_cross_entropy_sum(logits, class_target), divisor}};
  if (options_.l1_from < 0) return losses;
  const bool with_l1 = step.progress >= options_.l1_from;
  losses.push_back({"loss_l1",
                    with_l1 ? smooth_l1_sum(foreground_boxes, encoded(targets, corners, strides), 0)
                            : at::zeros({}, foreground_boxes.options().requires_grad(false)),
                    divisor});
  return losses;
}

Found Yolox::best(const Outputs& outputs, const Grid& grid, std::int64_t image) const {
  const auto [classes, label] = at::sigmoid(outputs.classes[image]).max(1);
  const auto score = classes * at::sigmoid(outputs.objects[image]);
  const auto good = (score >= options_.score_thresh).nonzero().squeeze(1);
  const auto of_good = [&](const at::Tensor& all) { return all.index_select(0, good); };
  const auto boxes = to_corners(
      decoded(of_good(outputs.boxes[image]), of_good(grid.corners), of_good(grid.strides)));
  const auto scores = of_good(score), labels = of_good(label);
  auto kept = batched_nms(boxes, scores, labels, options_.nms_thresh);
  kept = kept.narrow(0, 0, std::min(options_.detections_per_img, kept.size(0)));
  return {boxes.index_select(0, kept), scores.index_select(0, kept), labels.index_select(0, kept)};
}

std::vector<Found> Yolox::find(const at::Tensor& pixels) const {
  const at::NoGradGuard no_grad;
  const NormMode mode;
  const auto all = outputs(pixels, mode);
  const auto grid = Grid::of(pixels.size(2), pixels.size(3), pixels.device());
  std::vector<Found> found;
  for (std::int64_t image = 0; image < pixels.size(0); ++image)
    found.push_back(best(all, grid, image));
  return found;
}

std::vector<std::vector<DetectedObject>> Yolox::find_objects(const Batch& batch, DetectionNotes*) {
  return in_original_pixels(batch, find(pixels_of(batch, {})), {}, {}, options_.boxes);
}

onnx::Objects Yolox::add_nodes(const onnx::Images& images, bool) const {
  auto& g = *images.pixels.graph;
  const auto padded = onnx::padded_size(onnx::sides_of(images.pixels, 1, 3), images.divisor);
  const auto maps =
      pyramid_(normalize(images.pixels, images.sizes, padded, kPixels) + kPadding, NormMode{});
  std::vector<onnx::Value> all_boxes, all_scores, all_labels;
  for (std::size_t level = 0; level < heads_.size(); ++level) {
    const auto place = g.in("level" + std::to_string(level));
    const auto predictions = heads_[level](maps[level], NormMode{});
    const auto stride = static_cast<double>(kStrides[level]);
    const auto boxes = by_cell(predictions.boxes, 4);
    const auto centre =
                   (onnx::slice(boxes, 2, 0, 2) + cells_of(onnx::sides_of(maps[level], 2, 4))) *
                   stride,
               half = onnx::apply("Exp", onnx::slice(boxes, 2, 2, 4)) * (stride / 2);
    const auto [best, label] =
        onnx::top_k(onnx::apply("Sigmoid", by_cell(predictions.classes, classes_)), g.ints({1}));
    all_boxes.push_back(onnx::concat({centre - half, centre + half}, 2));
    all_scores.push_back(
        onnx::squeeze(best * onnx::apply("Sigmoid", by_cell(predictions.objects, 1)), {2}));
    all_labels.push_back(onnx::squeeze(label, {2}));
  }
  const auto place = g.in("detections");
  const auto boxes = onnx::concat(all_boxes, 1), labels = onnx::concat(all_labels, 1);
  const auto all = onnx::concat(all_scores, 1);  // (N, P)
  const auto scores = onnx::where(all >= options_.score_thresh, all, -1);
  const auto label = g.constant(at::arange(classes_, at::kLong).view({-1, 1}), "labels");
  const auto by_class = onnx::where(onnx::equal(onnx::unsqueeze(labels, {1}), label),
                                    onnx::unsqueeze(scores, {1}), -1);  // (N, K, P)
  const auto kept =
      batched_nms(boxes, by_class, options_.nms_thresh, /*offset=*/0, options_.detections_per_img);
  const auto [best, cells] =
      top_kept(scores, onnx::gather(kept, g.ints({0, 2}), 1), options_.detections_per_img);

  const auto found = onnx::places_of(best > 0);  // (D, 2): image, rank
  const auto image = onnx::slice(found, 1, 0, 1);
  const auto cell =
      onnx::concat({image, onnx::unsqueeze(onnx::gather_nd(cells, found), {1})}, 1);  // (D, 2)
  return in_original_pixels(images,
                            {onnx::gather_nd(boxes, cell),
                             onnx::gather_nd(best, found),
                             onnx::gather_nd(labels, cell),
                             onnx::squeeze(image, {1}),
                             {}},
                            {}, /*cells=*/0, options_.boxes);
}

MILLRACE_REGISTER(register_detector<Yolox>(
    "yolox", "YOLOX: one-stage, anchor-free, decoupled head, SimOTA (nano to x)"));

}  // namespace millrace::yolox
