// Which ground truth a box belongs to, and which boxes are trained on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/random.h"

namespace millrace {

struct Matches {
  at::Tensor truth;  // (N) int64: index of the best ground truth, 0 where there is none
  at::Tensor label;  // (N) int8: 1 foreground, 0 background, -1 between the thresholds (ignored)
};

/// Matches N boxes by iou (G, N): >= high is foreground, < low background. With `low_quality`, the best boxes of each
/// ground truth (ties included) are foreground whatever their IoU, and keep their own best truth (detectron2's and
/// torchvision's Matcher). G may be 0.
Matches match(const at::Tensor& iou, double low, double high, bool low_quality);

struct Samples {
  at::Tensor positive;  // ascending indices, int64
  at::Tensor negative;
};

/// Draws up to `count` boxes of which up to `count * positive_fraction` are foreground, uniformly without
/// replacement, from labels (N) int8.
Samples sample(const at::Tensor& label, std::int64_t count, double positive_fraction, Rng& rng);

}  // namespace millrace
