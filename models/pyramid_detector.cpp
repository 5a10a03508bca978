#include "models/pyramid_detector.h"

#include <ATen/core/grad_mode.h>

#include "models/layers/results.h"

namespace millrace {

Features PyramidDetector::features(const Batch& batch, bool training) const {
  Features features{pyramid_(batch, training), {batch.height, batch.width}, {}};
  for (const auto& image : batch.images) features.sizes.emplace_back(image.height, image.width);
  return features;
}

Losses PyramidDetector::losses(const Batch& batch, const StepInfo& step) {
  return head_losses(features(batch, /*training=*/true), truths_of(batch), step);
}

std::vector<std::vector<DetectedObject>> PyramidDetector::detect(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const auto features = this->features(batch, /*training=*/false);
  const auto found = find(features);
  return in_original_pixels(batch, found, masks(features, found), mask_paste_);
}

}  // namespace millrace
