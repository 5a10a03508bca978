// The rows or columns of a map that ROIAlign reads for a region.
//
// Bilinear sampling is separable, and so is the mean over the samples of a cell: the value of a
// cell is the sum of row weight x column weight x feature over the few rows and columns that its
// samples touch. The weights are computed once per region and axis; the remaining work is a sum of
// scaled vectors of C channels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

/// The division of one axis of a region into cells and samples.
struct AxisOptions {
  std::int64_t cells = 7;
  std::int64_t sampling_ratio = 0;
  bool aligned = true;
};

/// The taps of each cell of a region along one axis. T is float or double.
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
  void set(T start, T end, std::int64_t length, const AxisOptions& options) {
    taps_.clear();
    ends_.assign(1, 0);
    const T shift = options.aligned ? T{0.5} : T{0};
    const T low = start - shift;
    T extent = end - shift - low;
    if (!options.aligned) extent = std::max(extent, T{1});
    const T cell_extent = extent / static_cast<T>(options.cells);
    const auto samples =
        options.sampling_ratio > 0
            ? options.sampling_ratio
            : static_cast<std::int64_t>(std::ceil(std::max(T{0}, std::min(cell_extent, T{1e4}))));
    const T share = T{1} / static_cast<T>(samples);

    for (std::int64_t cell = 0; cell < options.cells; ++cell) {
      for (std::int64_t sample = 0; sample < samples; ++sample) {
        const T at = low + static_cast<T>(cell) * cell_extent +
                     (static_cast<T>(sample) + T{0.5}) * cell_extent / static_cast<T>(samples);
        if (!(at >= -1 && at <= static_cast<T>(length))) continue;
        const T inside = std::clamp(at, T{0}, static_cast<T>(length - 1));
        const auto index = static_cast<std::int64_t>(inside);
        const T fraction = inside - static_cast<T>(index);
        add(index, (1 - fraction) * share);
        if (fraction > 0) add(index + 1, fraction * share);
      }
      ends_.push_back(taps_.size());
    }
  }

  std::span<const Tap> operator[](std::int64_t cell) const {
    const auto first = ends_[static_cast<std::size_t>(cell)];
    return {taps_.data() + first, ends_[static_cast<std::size_t>(cell) + 1] - first};
  }

  std::span<const Tap> all() const { return taps_; }

 private:
  /// Adds a tap, or adds its weight to one of the cell's last two taps if that has the same index,
  /// as neighbouring samples usually do.
  void add(std::int64_t index, T weight) {
    for (auto back = taps_.size(); back > ends_.back() && back + 2 > taps_.size(); --back)
      if (taps_[back - 1].index == index) {
        taps_[back - 1].weight += weight;
        return;
      }
    taps_.push_back({index, weight});
  }

  std::vector<Tap> taps_;
  std::vector<std::size_t> ends_;
};

}  // namespace millrace
