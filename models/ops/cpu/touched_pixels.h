// Finds the nonzero pixels of a gradient. Losses of a few sampled anchors or objects leave most of
// a map's gradient zero, so that most of a backward pass can be skipped.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace millrace {

struct TouchedPixels {
  std::vector<std::uint8_t> is;  // (N H W): 1 if a channel is not zero
  std::int64_t count = 0;        // number of ones in `is`
};

/// Finds the touched pixels of a gradient (N, C, H, W) of any type on a CPU, channels last in
/// memory. Cheap if most pixels are not zero, as reading stops at a pixel's first nonzero channel.
TouchedPixels touched_pixels(const at::Tensor& gradient);

}  // namespace millrace
