// Finds the nonzero pixels of a gradient. Losses of a few sampled anchors or objects leave most of
// a map's gradient zero, so that most of a backward pass can be skipped.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace millrace {

struct TouchedPixels {
  std::vector<std::uint8_t> is;  // (N H W): 1 if a channel is not zero
  std::int64_t count = 0;        // number of ones in `is`
};

/// Finds the touched pixels of a gradient (N, C, H, W) of any type on a CPU, channels last in
/// memory. Cheap if most pixels are not zero, as reading stops at a pixel's first nonzero channel.
inline TouchedPixels touched_pixels(const at::Tensor& gradient) {
  constexpr std::int64_t kGrain = 1024;  // minimum pixels of a thread's share
  const auto pixels = gradient.size(0) * gradient.size(2) * gradient.size(3);
  const auto bytes = static_cast<std::size_t>(gradient.size(1)) * gradient.element_size();
  const auto* const from = static_cast<const std::byte*>(gradient.const_data_ptr());
  const std::vector<std::byte> zeros(bytes);
  TouchedPixels touched{std::vector<std::uint8_t>(static_cast<std::size_t>(pixels))};
  at::parallel_for(0, pixels, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      touched.is[i] = std::memcmp(from + i * bytes, zeros.data(), bytes) != 0;
  });
  touched.count = std::ranges::count(touched.is, 1);
  return touched;
}

}  // namespace millrace
