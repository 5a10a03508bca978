// Pads, normalises and converts uint8 images on a GPU in one pass, as
// millrace/models/backbones/pyramid.cpp does.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

struct PixelScaling {
  float mean[3], deviation[3];
  bool bgr;  // true if the result has the reverse channel order

  MILLRACE_HOST_DEVICE float operator()(const std::uint8_t* pixel, int channel) const {
    return (static_cast<float>(pixel[bgr ? 2 - channel : channel]) - mean[channel]) /
           deviation[channel];
  }
};

/// Images padded to rows x columns pixels, and the height x width pixels of the result.
struct PixelTable {
  const std::uint8_t* pixels;  // (N, rows, columns, 3)
  std::int64_t rows, columns;
  std::int64_t height, width;  // size of the result
};

constexpr int kSizesTogether = 64;  // images per launch

/// Unpadded height and width of each image of a launch.
struct ImageSizes {
  int height[kSizesTogether], width[kSizesTogether];
};

/// Writes pixel `i` of the images from `first` on to `out` (N, height, width, 3); pixels outside an
/// image become 0.
template <typename T>
MILLRACE_HOST_DEVICE void normalize_pixel(const PixelTable& table, const ImageSizes& sizes,
                                          const PixelScaling& scaling, std::int64_t first,
                                          std::int64_t i, T* out) {
  const auto area = table.height * table.width;
  const auto image = i / area, y = i % area / table.width, x = i % table.width;
  const bool inside = y < sizes.height[image] && x < sizes.width[image];
  const auto* const pixel =
      table.pixels + (((first + image) * table.rows + y) * table.columns + x) * 3;
  T* const to = out + (first * area + i) * 3;
  for (int c = 0; c < 3; ++c) to[c] = static_cast<T>(inside ? scaling(pixel, c) : 0.0F);
}

/// Normalises `images` images. `sizes` (images, 2) has their heights and widths, in host memory. T
/// is float, __half or __nv_bfloat16.
template <typename T>
void normalize(const PixelTable& table, const std::int64_t* sizes, std::int64_t images,
               const PixelScaling& scaling, T* out, Stream stream);

}  // namespace millrace::cuda
