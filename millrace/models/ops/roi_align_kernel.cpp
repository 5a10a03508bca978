#include "millrace/models/ops/roi_align_kernel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "millrace/models/ops/simd.h"

namespace millrace {
namespace {

/// The cells of a region and what each reads of a map.
template <typename T>
struct RegionTaps {
  AxisTaps<T> rows, columns;
  std::int64_t height, width;  // cells

  template <typename Value>
  void set(const T* roi, const FeatureMap<Value>& map, const RoiAlignOptions& options) {
    height = options.height, width = options.width;
    rows.set(roi[2] * map.scale, roi[4] * map.scale, map.height,
             {height, options.sampling_ratio, options.aligned});
    columns.set(roi[1] * map.scale, roi[3] * map.scale, map.width,
                {width, options.sampling_ratio, options.aligned});
  }
};

/// Where pixels of a map lie in memory.
struct Strides {
  std::int64_t row, column;
};

/// Calls `pixel(offset, weight)` for every tap of a cell.
template <typename T, typename F>
[[gnu::always_inline]] inline void each_tap(const RegionTaps<T>& region, std::int64_t y,
                                            std::int64_t x, const Strides& strides, F pixel) {
  for (const auto& row : region.rows[y])
    for (const auto& column : region.columns[x])
      pixel(row.index * strides.row + column.index * strides.column, row.weight * column.weight);
}

constexpr std::int64_t kVectors = 8;  // that a sum over taps keeps in registers

template <typename T>
struct Lanes {
  using Vector [[gnu::vector_size(32), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  static constexpr auto kCount = static_cast<std::int64_t>(sizeof(Vector) / sizeof(T));
  static constexpr auto kBlock = kVectors * kCount;
};

/// One cell, all channels.
template <typename T>
[[gnu::always_inline]] inline void gather_cell(const T* map, const Strides& strides,
                                               const RegionTaps<T>& region, std::int64_t y,
                                               std::int64_t x, std::int64_t channels, T* output) {
  using Vector = typename Lanes<T>::Vector;
  constexpr auto kCount = Lanes<T>::kCount, kBlock = Lanes<T>::kBlock;
  std::int64_t c = 0;
  for (; c + kBlock <= channels; c += kBlock) {
    Vector sum[kVectors] = {};
    each_tap(region, y, x, strides, [&](std::int64_t offset, T weight) {
      const T* from = map + offset + c;
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v)
        sum[v] += weight * *reinterpret_cast<const Vector*>(from + v * kCount);
    });
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v)
      *reinterpret_cast<Vector*>(output + c + v * kCount) = sum[v];
  }
  if (c == channels) return;
  std::fill(output + c, output + channels, T{0});
  each_tap(region, y, x, strides, [&](std::int64_t offset, T weight) {
    for (auto i = c; i < channels; ++i) output[i] += weight * map[offset + i];
  });
}

template <typename T>
[[gnu::always_inline]] inline void gather_region(const T* map, const Strides& strides,
                                                 const RegionTaps<T>& region, std::int64_t channels,
                                                 T* output) {
  for (std::int64_t y = 0; y < region.height; ++y)
    for (std::int64_t x = 0; x < region.width; ++x, output += channels)
      gather_cell(map, strides, region, y, x, channels, output);
}

MILLRACE_SIMD void gather(const float* map, const Strides& strides, const RegionTaps<float>& region,
                          std::int64_t channels, float* output) {
  gather_region(map, strides, region, channels, output);
}

MILLRACE_SIMD void gather(const double* map, const Strides& strides,
                          const RegionTaps<double>& region, std::int64_t channels, double* output) {
  gather_region(map, strides, region, channels, output);
}

/// Adds `count` channels of the cells to the map, from where `cells` and `map` point.
template <typename T>
[[gnu::always_inline]] inline void scatter_region(const T* cells, std::int64_t channels,
                                                  const Strides& strides,
                                                  const RegionTaps<T>& region, std::int64_t count,
                                                  T* map) {
  for (std::int64_t y = 0; y < region.height; ++y)
    for (std::int64_t x = 0; x < region.width; ++x, cells += channels)
      each_tap(region, y, x, strides, [&](std::int64_t offset, T weight) {
        T* const to = map + offset;
        for (std::int64_t i = 0; i < count; ++i) to[i] += weight * cells[i];
      });
}

MILLRACE_SIMD void scatter(const float* cells, std::int64_t channels, const Strides& strides,
                           const RegionTaps<float>& region, std::int64_t count, float* map) {
  scatter_region(cells, channels, strides, region, count, map);
}

MILLRACE_SIMD void scatter(const double* cells, std::int64_t channels, const Strides& strides,
                           const RegionTaps<double>& region, std::int64_t count, double* map) {
  scatter_region(cells, channels, strides, region, count, map);
}

template <typename Value>
Strides strides_of(const FeatureMap<Value>& map) {
  return {map.width * map.channels, map.channels};
}

template <typename Value, typename T>
Value* image_of(const FeatureMap<Value>& map, const T* roi) {
  return map.data + static_cast<std::int64_t>(roi[0]) * map.height * map.width * map.channels;
}

template <typename Value, typename T>
void check_regions(std::span<const FeatureMap<Value>> maps, const T* rois,
                   const std::int64_t* levels, std::int64_t count) {
  for (std::int64_t r = 0; r < count; ++r) {
    if (const T image = rois[5 * r]; !(image >= 0 && image < static_cast<T>(maps[0].images)))
      throw std::invalid_argument("roi_align: a region of image " + std::to_string(image) +
                                  " in a batch of " + std::to_string(maps[0].images));
    if (levels[r] < 0 || levels[r] >= std::ssize(maps))
      throw std::invalid_argument("roi_align: a region of level " + std::to_string(levels[r]) +
                                  " of " + std::to_string(maps.size()) + " maps");
  }
}

}  // namespace

template <typename T>
void AxisTaps<T>::set(T start, T end, std::int64_t length, const AxisOptions& options) {
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
      add(ends_.back(), index, (1 - fraction) * share);
      if (fraction > 0) add(ends_.back(), index + 1, fraction * share);
    }
    ends_.push_back(taps_.size());
  }
}

/// Neighbouring samples mostly read the same rows: such a tap joins one of the last two of the
/// cell, from `first`.
template <typename T>
void AxisTaps<T>::add(std::size_t first, std::int64_t index, T weight) {
  for (auto back = taps_.size(); back > first && back + 2 > taps_.size(); --back)
    if (taps_[back - 1].index == index) {
      taps_[back - 1].weight += weight;
      return;
    }
  taps_.push_back({index, weight});
}

template <typename T>
void roi_align_forward(std::span<const FeatureMap<const T>> maps, const T* rois,
                       const std::int64_t* levels, std::int64_t count,
                       const RoiAlignOptions& options, T* output) {
  check_regions(maps, rois, levels, count);
  const auto numbers = options.height * options.width * maps[0].channels;  // per region
  at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
    RegionTaps<T> region;
    for (auto r = begin; r < end; ++r) {
      const auto& map = maps[static_cast<std::size_t>(levels[r])];
      region.set(rois + 5 * r, map, options);
      gather(image_of(map, rois + 5 * r), strides_of(map), region, map.channels,
             output + r * numbers);
    }
  });
}

template <typename T>
void roi_align_backward(const T* grad_output, const T* rois, const std::int64_t* levels,
                        std::int64_t count, const RoiAlignOptions& options,
                        std::span<const FeatureMap<T>> maps) {
  check_regions(maps, rois, levels, count);
  const auto map_of = [&](std::int64_t r) -> const FeatureMap<T>& {
    return maps[static_cast<std::size_t>(levels[r])];
  };
  std::vector<RegionTaps<T>> regions(static_cast<std::size_t>(count));
  at::parallel_for(0, count, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r)
      regions[static_cast<std::size_t>(r)].set(rois + 5 * r, map_of(r), options);
  });

  const auto channels = maps[0].channels;
  const auto numbers = options.height * options.width * channels;
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));  // which no two threads share
  const auto lines = (channels + kLine - 1) / kLine;
  at::parallel_for(0, lines, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto first = begin * kLine, share = std::min(end * kLine, channels) - first;
    for (std::int64_t r = 0; r < count; ++r)
      scatter(grad_output + r * numbers + first, channels, strides_of(map_of(r)),
              regions[static_cast<std::size_t>(r)], share,
              image_of(map_of(r), rois + 5 * r) + first);
  });
}

template class AxisTaps<float>;
template void roi_align_forward(std::span<const FeatureMap<const float>>, const float*,
                                const std::int64_t*, std::int64_t, const RoiAlignOptions&, float*);
template void roi_align_forward(std::span<const FeatureMap<const double>>, const double*,
                                const std::int64_t*, std::int64_t, const RoiAlignOptions&, double*);
template void roi_align_backward(const float*, const float*, const std::int64_t*, std::int64_t,
                                 const RoiAlignOptions&, std::span<const FeatureMap<float>>);
template void roi_align_backward(const double*, const double*, const std::int64_t*, std::int64_t,
                                 const RoiAlignOptions&, std::span<const FeatureMap<double>>);

}  // namespace millrace
