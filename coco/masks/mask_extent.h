// The extents of masks in one pass over their runs, and IoU for comparing one mask with many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// Measures a mask from its runs: call `skip` and `inside` alternately. REQUIRES: the runs fit into
/// the mask.
class ExtentMeter {
 public:
  ExtentMeter(std::uint32_t height, std::uint32_t width)
      : height_(height), width_(width), left_(width) {}

  void skip(std::uint32_t run) {
    if (height_ - row_ > run) {
      row_ += run;
      return;
    }
    run -= height_ - row_;  // moves to the top of the next column
    ++column_;
    row_ = run;
    if (run < height_ || height_ == 0) return;
    column_ += run / height_;
    row_ = run % height_;
  }

  void inside(std::uint32_t run) {
    if (run == 0) return;
    pixels_ += run;
    left_ = std::min(left_, column_);
    const std::uint32_t below = row_ + run;
    if (below <= height_) {
      top_ = std::min(top_, row_);
      bottom_ = std::max(bottom_, below);
      right_ = column_ + 1;
    } else {  // as in COCO, a run that continues in the next column has full height
      top_ = 0;
      bottom_ = height_;
      right_ = column_ + 1 + (below - 1) / height_;
    }
    skip(run);
  }

  MaskExtent finish() const {
    if (pixels_ == 0) return {height_, width_, 0, {}};
    const Box box{static_cast<float>(left_), static_cast<float>(top_), static_cast<float>(right_),
                  static_cast<float>(bottom_)};
    return {height_, width_, pixels_, box};
  }

 private:
  std::uint32_t height_, width_;
  std::uint32_t row_ = 0, column_ = 0;  // position of the next pixel
  std::uint32_t pixels_ = 0;
  std::uint32_t left_, top_ = UINT32_MAX, right_ = 0, bottom_ = 0;
};

/// Returns the number of pixels inside both masks, which must have the same size.
std::uint64_t shared_pixels(const Rle& a, const Rle& b);

/// Returns the IoU as COCO computes it: 0 if the boxes are disjoint, otherwise -1 if the mask sizes
/// differ. With a crowd, the union is the detection's area. `shared()` returns the number of pixels
/// inside both; it is not called, and the result is 0, if the IoU is below `least` for any shared
/// area.
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
