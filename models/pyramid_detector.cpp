#include "millrace/models/pyramid_detector.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <c10/core/TensorOptions.h>
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/layers/views.h"
#include "millrace/models/onnx/pixels.h"
#include "millrace/models/training_checks.h"

namespace millrace {
namespace {

/// Returns `device`. Throws ConfigError if no loaded plug-in has kernels of the operators for it.
at::Device with_kernels(at::Device device) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("millrace::match", "");
  const auto key = c10::computeDispatchKey(std::nullopt, std::nullopt, device);
  if (!op.hasComputedKernelForDispatchKey(key))
    throw ConfigError(
        fmt::format("no plug-in with operators for the device '{}' is loaded; add it to `plugins` "
                    "in the configuration",
                    device.str()));
  return device;
}

/// Maximum memory of the features of views that are kept for the masks; those of further views are
/// computed again.
constexpr std::size_t kKeptBytes = std::size_t{256} << 20;

}  // namespace

void PyramidDetectorOptions::describe(Options& o) {
  o.add("style", style, "preset of numeric switches; default values of the other options");
  pyramid.describe(o);
  boxes.describe(o);
  detection.describe(o);
}

void PyramidDetectorOptions::check(const Config& table, const Options& defaults) const {
  pyramid.check(table, defaults);
  detection.check(table, defaults);
}

PyramidDetector::PyramidDetector(const PyramidDetectorOptions& options, FpnTop top,
                                 MaskPaste mask_paste, const ModelContext& context)
    : options_(options),
      classes_(std::ssize(context.classes)),
      views_(views_of(options.detection)),
      mask_paste_(mask_paste),
      root_(parameters_, context.seed, with_kernels(context.device), "", !context.awaits_weights),
      pyramid_(std::make_unique<Pyramid>(root_ / "backbone", options.pyramid, top)) {}

PyramidDetector::~PyramidDetector() = default;

std::vector<std::string> PyramidDetector::check_facts(const TrainingFacts& facts) const {
  require_objects(facts);
  std::vector<std::string> warnings;
  const auto& options = options_.pyramid;
  if (auto warning = frozen_backbone_warning(facts, value_name(options.backbone), options.norm,
                                             options.freeze_at, /*trained_norm=*/Norm::gn))
    warnings.push_back(*std::move(warning));
  std::vector<std::string> by_part;
  if (options.norm == Norm::bn) by_part.emplace_back("model.backbone.norm");
  if (options.fpn_norm == Norm::bn) by_part.emplace_back("model.fpn.norm");
  if (!by_part.empty())
    if (auto warning = norm_by_part_warning(
            joined(by_part, " and ") + (by_part.size() > 1 ? " are" : " is"), facts))
      warnings.push_back(*std::move(warning));
  return warnings;
}

Features PyramidDetector::features(const Batch& batch, const NormMode& mode,
                                   cv::Size padded) const {
  Features features{(*pyramid_)(batch, mode, padded),
                    {std::max(batch.height, padded.height), std::max(batch.width, padded.width)},
                    {},
                    mode,
                    nullptr};
  for (const auto& image : batch.images) features.sizes.emplace_back(image.height, image.width);
  return features;
}

LossSums PyramidDetector::compute_losses(const Batch& batch, const StepInfo& step) {
  const NormMode mode{.training = !step.without_training, .ranks = step.ranks};
  const auto features = this->features(batch, mode, step.padded);
  return head_losses(features, truths_of(batch, features.maps[0].device()), step);
}

std::vector<Found> PyramidDetector::find_in_views(const Batch& batch, std::vector<Features>& kept) {
  std::vector<std::vector<at::Tensor>> boxes(batch.size()), scores(batch.size()),
      labels(batch.size());
  std::size_t bytes = 0;
  for (const auto& view : views_) {
    const auto changed = apply_view(batch, view);
    auto features = this->features(changed, NormMode{});
    const auto found = find(features);
    for (const auto& map : features.maps) bytes += map.nbytes();
    if (bytes <= kKeptBytes) kept.push_back(std::move(features));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      boxes[i].push_back(out_of_view(found[i].boxes, batch.images[i], changed.images[i], view));
      scores[i].push_back(found[i].scores);
      labels[i].push_back(found[i].labels);
    }
  }
  std::vector<Found> merged;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& image = batch.images[i];
    merged.push_back(best_detections({at::cat(boxes[i]), at::cat(scores[i]), at::cat(labels[i])},
                                     ImageSize(image.height, image.width), options_.boxes.offset,
                                     options_.detection));
  }
  return merged;
}

at::Tensor PyramidDetector::masks_in_views(const Batch& batch, const std::vector<Found>& found,
                                           const std::vector<Features>& kept) {
  at::Tensor sum;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& view = views_[v];
    const auto changed = apply_view(batch, view);
    auto moved = found;
    for (std::size_t i = 0; i < batch.size(); ++i)
      moved[i].boxes = into_view(found[i].boxes, batch.images[i], changed.images[i], view);
    auto mask = masks(v < kept.size() ? kept[v] : features(changed, NormMode{}), moved);
    if (!mask.defined()) return {};
    if (view.flipped) mask = mask.flip(2);
    sum = sum.defined() ? sum + mask : mask;
  }
  return (sum / static_cast<double>(views_.size())).contiguous();
}

bool PyramidDetector::has_one_view() const { return views_.size() == 1 && !views_[0].changes(); }

std::vector<std::vector<DetectedObject>> PyramidDetector::find_objects(const Batch& batch,
                                                                       DetectionNotes* notes) {
  const at::NoGradGuard no_grad;
  if (has_one_view()) {
    auto features = this->features(batch, NormMode{});
    DetectionIntermediates intermediates;
    if (notes) features.intermediates = &intermediates;
    const auto found = find(features);
    if (notes)
      *notes = {in_original_pixels(batch, intermediates.proposals, {}, mask_paste_),
                in_original_pixels(batch, intermediates.raw, {}, mask_paste_)};
    return in_original_pixels(batch, found, masks(features, found), mask_paste_);
  }
  std::vector<Features> kept;
  const auto found = find_in_views(batch, kept);
  return in_original_pixels(batch, found, masks_in_views(batch, found, kept), mask_paste_);
}

FoundNodes PyramidDetector::find_in_graph(const FeatureNodes&) const {
  throw Error(
      "export is not supported: the detector does not implement PyramidDetector::find_in_graph "
      "(millrace/models/pyramid_detector.h)");
}

onnx::Objects PyramidDetector::add_nodes(const onnx::Images& images, bool pasted) const {
  refuse_soft_nms(options_.detection);
  auto& g = *images.pixels.graph;
  const auto limits = limits_of(images.sizes);
  const auto padded = onnx::padded_size(onnx::sides_of(images.pixels, 1, 3), images.divisor);
  const bool one_view = has_one_view();

  std::vector<FeatureNodes> features;
  std::vector<ViewNodes> views;
  std::vector<onnx::Value> boxes, scores, labels;
  for (const auto& view : views_) {
    views.push_back(apply_view(images, padded, view));
    const auto& own = views.back();
    features.push_back({(*pyramid_)(own.pixels, own.sizes, one_view ? padded : own.padded),
                        one_view ? padded : own.padded, limits_of(own.sizes)});
    const auto found = find_in_graph(features.back());
    boxes.push_back(one_view ? found.boxes : out_of_view(found.boxes, own, view));
    scores.push_back(found.scores);
    labels.push_back(found.labels);
  }
  FoundNodes found{onnx::concat(boxes, 1), onnx::concat(scores, 1), onnx::concat(labels, 1)};
  if (!one_view)
    found = best_detections(found, limits, options_.boxes.offset, classes_, options_.detection);

  const auto places = onnx::places_of(found.scores > 0);  // (D, 2): image and index
  onnx::Objects objects{onnx::gather_nd(found.boxes, places),
                        onnx::gather_nd(found.scores, places),
                        onnx::gather_nd(found.labels, places),
                        onnx::squeeze(onnx::slice(places, 1, 0, 1), {1}),
                        {}};
  onnx::Value sum;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    auto moved = objects;
    if (!one_view) moved.boxes = into_view(objects.boxes, objects.images, views[v], views_[v]);
    auto mask = masks_in_graph(features[v], moved);
    if (!mask.defined()) break;
    if (views_[v].flipped)
      mask = g.add("Slice", {mask, g.ints({-1}), g.ints({INT64_MIN}), g.ints({2}), g.ints({-1})});
    sum = sum.defined() ? sum + mask : mask;
  }
  if (sum.defined() && views_.size() > 1) sum = sum / static_cast<double>(views_.size());
  objects.masks = sum;
  return in_original_pixels(images, objects, mask_paste_, pasted ? mask_cells() : 0);
}

}  // namespace millrace
