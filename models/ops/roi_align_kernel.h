// ROIAlign's arithmetic on plain memory; roi_align.h makes it an operator with a gradient.
//
// Bilinear sampling is separable, and so is the mean over the samples of a cell: the value of a cell is the sum
// of row weight x column weight x feature over the few rows and columns that its samples touch. The weights are
// worked out once a region and axis; what is left is adding up scaled vectors of C channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/ops/roi_align.h"

namespace millrace {

/// A weighted read of one row or column of a feature map.
struct Tap {
  std::int64_t index;
  float weight;
};

/// The taps of each cell of a region along one axis.
class AxisTaps {
 public:
  /// A region from `start` to `end` (feature pixels) on a map of `length` pixels. Samples more than a pixel
  /// outside the map count as zero; a region that is not finite has no taps.
  AxisTaps(float start, float end, std::int64_t length, const RoiAlignOptions& options);

  std::span<const Tap> operator[](std::int64_t cell) const {
    const auto first = ends_[static_cast<std::size_t>(cell)];
    return {taps_.data() + first, ends_[static_cast<std::size_t>(cell) + 1] - first};
  }

 private:
  void add(std::size_t first, std::int64_t index, float weight);

  std::vector<Tap> taps_;
  std::vector<std::size_t> ends_;
};

struct RoiTaps {
  std::int64_t image;
  AxisTaps rows, columns;
};

/// A channels-last feature map.
struct MapShape {
  std::int64_t images, channels, height, width;
};

/// The taps of `count` regions of five floats: image, x1 y1 x2 y2. Throws std::invalid_argument where the image
/// is none of the map's.
std::vector<RoiTaps> roi_taps(const float* rois, std::int64_t count, const MapShape& shape,
                              const RoiAlignOptions& options);

/// features (N, H, W, C) -> output (R, size, size, C); output need not be initialised.
void roi_align_forward(const float* features, const MapShape& shape,
                       const std::vector<RoiTaps>& rois, std::int64_t size, float* output);

/// grad_output (R, size, size, C) is added to grad_features (N, H, W, C). Threads share out channels and take the
/// regions in order, so sums do not depend on their number.
void roi_align_backward(const float* grad_output, const MapShape& shape,
                        const std::vector<RoiTaps>& rois, std::int64_t size, float* grad_features);

}  // namespace millrace
