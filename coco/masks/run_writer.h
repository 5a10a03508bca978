// Builds run lengths from stretches of inside pixels. One thread.
#pragma once

#include <cstdint>
#include <utility>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// Takes stretches [begin, end) of inside pixels, counted down the columns, in ascending order.
/// Empty ones are dropped and touching ones join, so the counts are canonical.
class RunWriter {
 public:
  /// `runs`: about how many counts to expect.
  RunWriter(std::uint32_t height, std::uint32_t width, std::size_t runs = 0) {
    mask_.height = height, mask_.width = width;
    mask_.counts.reserve(runs);
  }

  void add(std::uint32_t begin, std::uint32_t end) {
    if (begin >= end) return;
    if (begin == written_ && !mask_.counts.empty()) {
      mask_.counts.back() += end - begin;
    } else {
      mask_.counts.push_back(begin - written_);
      mask_.counts.push_back(end - begin);
    }
    written_ = end;
  }

  Rle finish() && {
    const std::uint32_t rest = mask_.height * mask_.width - written_;
    if (rest > 0 || mask_.counts.empty()) mask_.counts.push_back(rest);
    return std::move(mask_);
  }

 private:
  Rle mask_;
  std::uint32_t written_ = 0;
};

}  // namespace millrace::coco
