#include "rtdetr.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>

#include <millrace/base/errors.h>
#include <millrace/models/layers/objects.h>
#include <millrace/models/layers/pixels.h>
#include <millrace/models/layers/results.h>
#include <millrace/models/onnx/operations.h>
#include <millrace/models/training_checks.h>
#include <algorithm>

#include "box_forms.h"
#include "set_losses.h"

namespace millrace::rtdetr {
namespace {

at::Device only_cpu(at::Device device) {
  if (!device.is_cpu())
    throw ConfigError("rtdetr runs on the CPU only: set train.device = \"cpu\"");
  return device;
}

cv::Size padded_size(const Batch& batch, cv::Size padded = {}) {
  const cv::Size size(std::max(batch.width, padded.width), std::max(batch.height, padded.height));
  if (size.width % 32 != 0 || size.height % 32 != 0)
    throw ConfigError(
        "rtdetr requires image sides that are multiples of 32: set data.divisor = 32 and "
        "data.short_side to a multiple of 32");
  return size;
}

/// Returns the factors between boxes in pixels and as fractions of the network's input, (4).
at::Tensor sides_of(cv::Size padded) {
  return at::tensor({padded.width, padded.height, padded.width, padded.height}, at::kFloat);
}

Prediction narrowed(const Prediction& all, std::int64_t first, std::int64_t count) {
  return {all.logits.narrow(1, first, count), all.boxes.narrow(1, first, count)};
}

/// Returns the number of denoising queries, which is the same in all parts of the step on all
/// ranks.
DenoisingShape shape_of(const std::vector<Target>& targets, const StepInfo& step,
                        const RtDetrOptions& options) {
  auto most = step.max_objects;
  for (const auto& target : targets) most = std::max(most, target.labels.size(0));
  return {std::min(most, options.decoder.num_queries), options.denoising};
}

/// Returns the normalisers of the losses and of the denoising losses.
std::pair<LossDivisor, LossDivisor> counts_in(const std::vector<Target>& targets,
                                              const DenoisingShape& shape) {
  std::int64_t objects = 0;
  for (const auto& target : targets) objects += target.labels.size(0);
  return {{"objects", static_cast<double>(objects)},
          {"denoised objects", static_cast<double>(objects * shape.groups)}};
}

}  // namespace

RtDetr::RtDetr(const RtDetrOptions& options, const ModelContext& context)
    : options_(options),
      network_(
          Scope(parameters_, context.seed, only_cpu(context.device), "", !context.awaits_weights) /
              "model",
          options, std::ssize(context.classes)) {}

std::vector<Target> targets_of(const Batch& batch, cv::Size padded) {
  std::vector<Target> targets;
  for (const auto& truth : truths_of(batch))
    targets.push_back({truth.labels, to_centers(truth.boxes / sides_of(padded))});
  return targets;
}

LossSums losses_of(const Network::Output& output, const std::vector<Target>& targets,
                   const std::vector<Target>& denoised, const DenoisingShape& shape,
                   const RtDetrOptions& options) {
  const auto extra = shape.queries(), queries = output.selection.logits.size(1);

  SetLosses last, others, denoising;
  const auto add = [&](const Prediction& own, SetLosses& sums) {
    sums += set_losses(own, match(own, targets, options.match), options.loss);
  };
  for (std::size_t i = 0; i < output.layers.size(); ++i)
    add(narrowed(output.layers[i], extra, queries), i + 1 == output.layers.size() ? last : others);
  add({output.selection.logits, at::sigmoid(output.selection.box_logits)}, others);
  if (extra > 0) {
    const auto pairs = denoising_pairs(denoised, shape);
    for (const auto& layer : output.layers)
      denoising += set_losses(narrowed(layer, 0, extra), pairs, options.loss);
  }

  LossSums losses;
  const auto name = [&](const SetLosses& sums, const std::string& end, const LossDivisor& divisor) {
    losses.push_back({"loss_vfl" + end, sums.classes, divisor});
    losses.push_back({"loss_bbox" + end, sums.l1, divisor});
    losses.push_back({"loss_giou" + end, sums.giou, divisor});
  };
  const auto [objects, of_denoising] = counts_in(targets, shape);
  name(last, "", objects);
  name(others, "_aux", objects);
  if (extra > 0) name(denoising, "_dn", of_denoising);
  return losses;
}

LossDivisors RtDetr::compute_counts(const Batch& batch, const StepInfo& step) const {
  const auto targets = targets_of(batch, padded_size(batch, step.padded));
  const auto shape = shape_of(targets, step, options_);
  const auto [objects, of_denoising] = counts_in(targets, shape);
  if (shape.queries() == 0) return {objects};
  return {objects, of_denoising};
}

LossSums RtDetr::compute_losses(const Batch& batch, const StepInfo& step) {
  const auto padded = padded_size(batch, step.padded);
  const auto pixels = normalize(batch, options_.pixels, at::kCPU, padded);
  const auto targets = targets_of(batch, padded);
  const auto shape = shape_of(targets, step, options_);
  const auto denoised = choose_denoised(targets, shape.most, step);

  const auto memory = network_.encode(
      pixels,
      {.training = !step.without_training, .ranks = step.without_training ? nullptr : step.ranks});
  DenoisingQueries denoising;
  if (shape.groups > 0)
    denoising = denoising_queries(
        denoised, shape, options_.denoising, network_.classes(),
        draw_noise(denoised, shape, options_.denoising, network_.classes(), step));
  const auto output =
      network_.decode(memory, shape.groups > 0 ? &denoising : nullptr, shape, /*last_only=*/false);
  return losses_of(output, targets, denoised, shape, options_);
}

std::vector<std::vector<DetectedObject>> RtDetr::find_objects(const Batch& batch, DetectionNotes*) {
  const at::NoGradGuard no_grad;
  const auto memory = network_.encode(normalize(batch, options_.pixels), NormMode{});
  const auto last = network_.decode(memory, nullptr, {}, /*last_only=*/true).layers.back();
  const auto classes = last.logits.size(2);
  const auto scores = at::sigmoid(last.logits).flatten(1);  // (N, Q K)
  const auto sides = sides_of(padded_size(batch));
  std::vector<Found> found;
  for (std::int64_t i = 0; i < scores.size(0); ++i) {
    auto [best, order] = at::sort(scores[i], /*stable=*/true, 0, /*descending=*/true);
    const auto good = (best > options_.test.score_thresh).sum().item<std::int64_t>();
    const auto count = std::min(good, options_.test.detections_per_img);
    const auto places = order.narrow(0, 0, count);
    found.push_back(
        {to_corners(last.boxes[i].index_select(0, places.div(classes, "floor"))) * sides,
         best.narrow(0, 0, count), places.remainder(classes)});
  }
  return in_original_pixels(batch, found, /*masks=*/{}, /*paste=*/{});
}

onnx::Objects RtDetr::add_nodes(const onnx::Images& images, bool) const {
  auto& g = *images.pixels.graph;
  const auto padded = onnx::padded_size(onnx::sides_of(images.pixels, 1, 3), images.divisor);
  const auto last = network_(normalize(images.pixels, images.sizes, padded, options_.pixels));
  const auto place = g.in("detections");
  const auto scores = onnx::reshape(onnx::apply("Sigmoid", last.logits), {0, -1});  // (N, Q K)
  const auto [best, order] =
      onnx::top_k(scores, onnx::minimum(onnx::side_of(scores, 1),
                                        static_cast<double>(options_.test.detections_per_img)));
  const auto found = onnx::places_of(best > options_.test.score_thresh);  // (D, 2): image, rank
  const auto image = onnx::slice(found, 1, 0, 1), pair = onnx::gather_nd(order, found);
  const auto classes = g.scalar(static_cast<double>(network_.classes()), onnx::Type::i64);
  const auto query = onnx::concat({image, onnx::unsqueeze(pair / classes, {1})}, 1);  // (D, 2)
  const auto sides = onnx::cast(onnx::gather(padded, g.ints({1, 0, 1, 0}), 0), onnx::Type::f32);
  return in_original_pixels(images,
                            {to_corners(onnx::gather_nd(last.boxes, query)) * sides,
                             onnx::gather_nd(best, found),
                             onnx::remainder(pair, classes),
                             onnx::squeeze(image, {1}),
                             {}},
                            {}, /*cells=*/0);
}

std::vector<std::string> RtDetr::check_facts(const TrainingFacts& facts) const {
  require_objects(facts);
  std::vector<std::string> warnings;
  const auto& [type, width, norm, freeze_at] = options_.backbone;
  if (auto warning = frozen_backbone_warning(facts, value_name(type), norm, freeze_at,
                                             /*trained_norm=*/Norm::bn))
    warnings.push_back(*std::move(warning));
  for (const auto& [option, of] : {std::pair{"model.backbone.norm is", &norm},
                                   std::pair{"model.encoder.norm is", &options_.encoder.norm}})
    if (*of == Norm::bn)
      if (auto warning = norm_by_part_warning(option, facts))
        warnings.push_back(*std::move(warning));
  return warnings;
}

MILLRACE_REGISTER(register_detector<RtDetr>(
    "rtdetr", "RT-DETR and RT-DETRv2: real-time detection transformer without NMS"));

}  // namespace millrace::rtdetr
