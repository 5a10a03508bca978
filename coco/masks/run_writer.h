// Builds run lengths from stretches of inside pixels. Not thread-safe.
#pragma once

#include <cstdint>
#include <utility>

#include "millrace/coco/masks/masks.h"

namespace millrace::coco {

/// Collects stretches [begin, end) of inside pixels in column-major order, ascending. Empty
/// stretches are dropped and adjacent ones joined, so that the counts are canonical.
class RunWriter {
 public:
  /// `runs` is an estimate of the number of counts.
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
