// Which pixels of a gradient are not zero. Losses of a few sampled anchors or of objects alone
// leave most of a map's gradient zero, and so most of the work of a backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace millrace {

struct TouchedPixels {
  std::vector<std::uint8_t> is;  // (N H W): 1 where some channel is not zero
  std::int64_t count = 0;        // of them
};

/// Of a gradient (N, C, H, W) of any type on a CPU, channels last in memory. Takes little where
/// most pixels are not zero: reading stops at a pixel's first channel that is not.
TouchedPixels touched_pixels(const at::Tensor& gradient);

}  // namespace millrace
