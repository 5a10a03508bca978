#include "models/pyramid_detector.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include "models/layers/results.h"
#include "models/layers/style.h"

namespace millrace {

void PyramidDetectorOptions::describe(Options& o) {
  add_style(o, style);
  pyramid.describe(o);
  boxes.describe(o);
  detection.describe(o);
  views.describe(o);
}

void PyramidDetectorOptions::check(const Config& table) const {
  pyramid.check(table);
  views.check(table);
}

PyramidDetector::PyramidDetector(const PyramidDetectorOptions& options, FpnTop top,
                                 std::string mask_paste, const ModelContext& context)
    : views_(options.views.views()),
      detection_(options.detection),
      box_offset_(options.boxes.offset),
      mask_paste_(std::move(mask_paste)),
      root_(parameters_, context.seed, context.device),
      pyramid_(root_ / "backbone", options.pyramid, top) {}

Features PyramidDetector::features(const Batch& batch, const NormPass& pass) const {
  Features features{pyramid_(batch, pass), {batch.height, batch.width}, {}, pass};
  for (const auto& image : batch.images) features.sizes.emplace_back(image.height, image.width);
  return features;
}

Losses PyramidDetector::losses(const Batch& batch, const StepInfo& step) {
  const NormPass pass{.training = !step.measured_only, .ranks = step.ranks};
  const auto features = this->features(batch, pass);
  return head_losses(features, truths_of(batch, features.maps[0].device()), step);
}

std::vector<Found> PyramidDetector::find_in_views(const Batch& batch) {
  std::vector<std::vector<at::Tensor>> boxes(batch.size()), scores(batch.size()),
      labels(batch.size());
  for (const auto& view : views_) {
    const auto changed = seen(batch, view);
    const auto found = find(features(changed, NormPass{}));
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
                                     ImageSize(image.height, image.width), box_offset_,
                                     detection_));
  }
  return merged;
}

at::Tensor PyramidDetector::masks_in_views(const Batch& batch, const std::vector<Found>& found) {
  at::Tensor sum;
  for (const auto& view : views_) {
    const auto changed = seen(batch, view);
    auto moved = found;
    for (std::size_t i = 0; i < batch.size(); ++i)
      moved[i].boxes = into_view(found[i].boxes, batch.images[i], changed.images[i], view);
    auto mask = masks(features(changed, NormPass{}), moved);
    if (!mask.defined()) return {};
    if (view.flipped) mask = mask.flip(2);
    sum = sum.defined() ? sum + mask : mask;
  }
  return (sum / static_cast<double>(views_.size())).contiguous();
}

std::vector<std::vector<DetectedObject>> PyramidDetector::detect(const Batch& batch) {
  const at::NoGradGuard no_grad;
  if (views_.size() == 1 && !views_[0].changes()) {
    const auto features = this->features(batch, NormPass{});
    const auto found = find(features);
    return in_original_pixels(batch, found, masks(features, found), mask_paste_);
  }
  const auto found = find_in_views(batch);
  return in_original_pixels(batch, found, masks_in_views(batch, found), mask_paste_);
}

}  // namespace millrace
