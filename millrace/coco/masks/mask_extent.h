// How large a mask is and where it lies, in one pass over its runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// Takes the runs of a mask: `skip` for those outside, `inside` for the others, in turn. REQUIRES:
/// they do not leave it.
class ExtentMeter {
 public:
  ExtentMeter(std::uint32_t height, std::uint32_t width)
      : height_(height), width_(width), left_(width) {}

  void skip(std::uint32_t run) {
    if (height_ - row_ > run) {
      row_ += run;
      return;
    }
    run -= height_ - row_;  // to the top of the next column
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
    } else {  // one that continues in the next column counts as full height, as in COCO
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
  std::uint32_t row_ = 0, column_ = 0;  // place of the next pixel
  std::uint32_t pixels_ = 0;
  std::uint32_t left_, top_ = UINT32_MAX, right_ = 0, bottom_ = 0;
};

}  // namespace millrace::coco
