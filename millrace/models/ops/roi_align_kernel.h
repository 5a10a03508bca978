// ROIAlign's arithmetic on plain memory; roi_align.h makes it an operator with a gradient.
//
// Bilinear sampling is separable, and so is the mean over the samples of a cell: the value of a
// cell is the sum of row weight x column weight x feature over the few rows and columns that its
// samples touch. The weights are worked out once a region and axis; what is left is adding up
// scaled vectors of C channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "millrace/models/ops/roi_align.h"

namespace millrace {

/// How an axis of a region is divided and sampled.
struct AxisOptions {
  std::int64_t cells = 7;
  std::int64_t sampling_ratio = 0;
  bool aligned = true;
};

/// The taps of each cell of a region along one axis. T: float or double.
template <typename T>
class AxisTaps {
 public:
  /// A weighted read of one row or column of a feature map.
  struct Tap {
    std::int64_t index;
    T weight;
  };

  /// Sets the taps of a region from `start` to `end` (feature pixels) on a map of `length` pixels.
  /// Samples more than a pixel outside the map count as zero; a region that is not finite has no
  /// taps.
  void set(T start, T end, std::int64_t length, const AxisOptions& options);

  std::span<const Tap> operator[](std::int64_t cell) const {
    const auto first = ends_[static_cast<std::size_t>(cell)];
    return {taps_.data() + first, ends_[static_cast<std::size_t>(cell) + 1] - first};
  }

  std::span<const Tap> all() const { return taps_; }

 private:
  void add(std::size_t first, std::int64_t index, T weight);

  std::vector<Tap> taps_;
  std::vector<std::size_t> ends_;
};

/// A channels-last feature map. Value: float or double, const where it is only read.
template <typename Value>
struct FeatureMap {
  Value* data;
  std::int64_t images, channels, height, width;
  std::remove_const_t<Value> scale;  // its pixels per image pixel
};

/// rois: five numbers each, image, x1 y1 x2 y2 in image pixels; levels: which of the maps each is
/// taken from. output (R, height, width, C) need not be initialised. Throws std::invalid_argument
/// where the image or the level of a region is not there.
template <typename T>
void roi_align_forward(std::span<const FeatureMap<const T>> maps, const T* rois,
                       const std::int64_t* levels, std::int64_t count,
                       const RoiAlignOptions& options, T* output);

/// grad_output (R, height, width, C) is added to the maps. Threads share out channels and take the
/// regions in order, so sums do not depend on their number.
template <typename T>
void roi_align_backward(const T* grad_output, const T* rois, const std::int64_t* levels,
                        std::int64_t count, const RoiAlignOptions& options,
                        std::span<const FeatureMap<T>> maps);

}  // namespace millrace
