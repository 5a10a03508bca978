// IoU of two masks, for callers that compare one mask with many. Pure; any thread.
#pragma once

#include <algorithm>

#include "millrace/coco/masks/mask_extent.h"

namespace millrace::coco {

/// Pixels inside both masks of one size.
std::uint64_t shared_pixels(const Rle& a, const Rle& b);

/// IoU as COCO computes it: 0 if boxes are apart, else -1 if sizes differ; the union with a crowd
/// is the detection's area. `shared()` gives the pixels inside both; it is not called, and the
/// result 0, if the IoU is below `least` whatever they share.
template <typename F>
double iou(const MaskExtent& detection, const MaskExtent& truth, bool crowd, double least,
           F shared) {
  const Box &d = detection.box, &t = truth.box;
  const float width = std::min(d.x2, t.x2) - std::max(d.x1, t.x1);
  const float height = std::min(d.y2, t.y2) - std::max(d.y1, t.y1);
  if (width <= 0 || height <= 0) return 0;
  if (detection.height != truth.height || detection.width != truth.width) return -1;
  const std::uint64_t both = std::uint64_t{detection.pixels} + truth.pixels;
  const auto quotient = [&](std::uint64_t pixels) {
    return static_cast<double>(pixels) /
           static_cast<double>(crowd ? detection.pixels : both - pixels);
  };
  const auto window = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  const auto most = std::min<std::uint64_t>({window, detection.pixels, truth.pixels});
  if (quotient(most) < least) return 0;
  const std::uint64_t pixels = shared();
  return pixels == 0 ? 0 : quotient(pixels);
}

}  // namespace millrace::coco
