// ROIAlign (He et al. 2017) on channels-last maps of several levels, on the GPU: the value of one
// cell and channel, the weight with which a cell reads a pixel, and the kernels. Semantics and
// switches are those of millrace/models/ops/roi_align.h.
//
// Bilinear sampling is separable, so weights are computed per axis. The gradient of a pixel is
// gathered from the regions that read it, in their order, without atomics, so each run gives the
// same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

constexpr int kMaxLevels = 6;
constexpr int kMaxCells = 256;  // maximum cells of a region per axis

/// Maps (N, H, W, C) of T, one per level.
template <typename T>
struct Pyramid {
  T* maps[kMaxLevels];
  int heights[kMaxLevels], widths[kMaxLevels];
  float scales[kMaxLevels];  // feature pixels per image pixel
  int levels, images, channels;
};

/// Regions `rois` (R, 5) as image, x1, y1, x2, y2, and the level that each reads (R).
struct Regions {
  const float* rois;
  const std::int64_t* levels;
  int count;
};

struct RoiAlignSwitches {
  int rows, columns;   // cells per region
  int sampling_ratio;  // samples per cell and axis; 0 = adaptive
  bool aligned;
};

/// One axis of a region on a map of `length` pixels.
struct SampledAxis {
  float low, cell;  // start and cell size, in feature pixels
  int samples, length;

  MILLRACE_HOST_DEVICE SampledAxis(float start, float end, float scale, int cells, int map_length,
                                   const RoiAlignSwitches& switches)
      : length(map_length) {
    const float shift = switches.aligned ? 0.5F : 0.0F;
    low = start * scale - shift;
    float extent = end * scale - shift - low;
    if (!switches.aligned && !(extent >= 1.0F)) extent = extent != extent ? extent : 1.0F;
    cell = extent / static_cast<float>(cells);
    // NaN becomes 0
    const float adaptive = cell > 0 ? (cell < 1e4F ? cell : 1e4F) : 0.0F;
    samples = switches.sampling_ratio > 0 ? switches.sampling_ratio
                                          : static_cast<int>(std::ceil(adaptive));
  }

  /// Computes where sample `s` of a cell reads: pixel `index`, and the next pixel with weight
  /// `fraction`. Returns false if the sample is outside the map.
  MILLRACE_HOST_DEVICE bool sample(int of_cell, int s, int& index, float& fraction) const {
    const float at = low + static_cast<float>(of_cell) * cell +
                     (static_cast<float>(s) + 0.5F) * cell / static_cast<float>(samples);
    if (!(at >= -1.0F && at <= static_cast<float>(length))) return false;
    const float last = static_cast<float>(length - 1);
    const float inside = at < 0 ? 0 : at > last ? last : at;
    index = static_cast<int>(inside);
    fraction = inside - static_cast<float>(index);
    return true;
  }

  /// Returns the weight of pixel `pixel` in the cell's mean.
  MILLRACE_HOST_DEVICE float weight(int of_cell, int pixel) const {
    float sum = 0;
    for (int s = 0; s < samples; ++s) {
      int index;
      float fraction;
      if (!sample(of_cell, s, index, fraction)) continue;
      if (index == pixel) sum += 1 - fraction;
      if (index + 1 == pixel) sum += fraction;
    }
    return samples > 0 ? sum / static_cast<float>(samples) : 0;
  }

  /// Returns true if some sample may read a pixel of [first, last].
  MILLRACE_HOST_DEVICE bool may_read(int cells, int first, int last) const {
    const float end = low + cell * static_cast<float>(cells);
    const float from = low < end ? low : end, to = low < end ? end : low;
    return from <= static_cast<float>(last) + 1 && to >= static_cast<float>(first) - 1;
  }
};

/// The image, level and both axes of region `r`.
struct SampledRegion {
  int image, level;
  SampledAxis y, x;

  template <typename T>
  MILLRACE_HOST_DEVICE SampledRegion(const Pyramid<T>& pyramid, const Regions& regions, int r,
                                     const RoiAlignSwitches& switches)
      : image(static_cast<int>(regions.rois[r * 5])),
        level(static_cast<int>(regions.levels[r])),
        y(regions.rois[r * 5 + 2], regions.rois[r * 5 + 4], pyramid.scales[level], switches.rows,
          pyramid.heights[level], switches),
        x(regions.rois[r * 5 + 1], regions.rois[r * 5 + 3], pyramid.scales[level], switches.columns,
          pyramid.widths[level], switches) {}
};

/// Computes the means of the samples of cell (row, column) for V channels from `channel` on.
/// `channel` and the map's channel count are multiples of V.
template <int V, typename T>
MILLRACE_HOST_DEVICE void roi_cell(const Pyramid<const T>& pyramid, const SampledRegion& region,
                                   int row, int column, int channel, float* means) {
  const int width = pyramid.widths[region.level], channels = pyramid.channels;
  const T* const map =
      pyramid.maps[region.level] +
      static_cast<std::int64_t>(region.image) * pyramid.heights[region.level] * width * channels +
      channel;
  const auto at = [&](int y, int x) {
    return *reinterpret_cast<const Pack<T, V>*>(map + (static_cast<std::int64_t>(y) * width + x) *
                                                          channels);
  };
  for (int v = 0; v < V; ++v) means[v] = 0;
  for (int sy = 0; sy < region.y.samples; ++sy) {
    int y;
    float down;
    if (!region.y.sample(row, sy, y, down)) continue;
    const int below = down > 0 ? y + 1 : y;
    for (int sx = 0; sx < region.x.samples; ++sx) {
      int x;
      float right;
      if (!region.x.sample(column, sx, x, right)) continue;
      const int beside = right > 0 ? x + 1 : x;
      const auto a = at(y, x), b = at(y, beside), c = at(below, x), d = at(below, beside);
      for (int v = 0; v < V; ++v)
        means[v] += (1 - down) * ((1 - right) * static_cast<float>(a.values[v]) +
                                  right * static_cast<float>(b.values[v])) +
                    down * ((1 - right) * static_cast<float>(c.values[v]) +
                            right * static_cast<float>(d.values[v]));
    }
  }
  const int samples = region.y.samples * region.x.samples;
  for (int v = 0; v < V; ++v) means[v] = samples > 0 ? means[v] / static_cast<float>(samples) : 0;
}

/// Adds the gradient that the cells of one region contribute to one pixel and V channels to `sums`.
/// `grad_cells` points to the first of these channels in the region's gradient (rows, columns, C);
/// row_weights and column_weights are SampledAxis::weight of each cell.
template <int V, typename T>
MILLRACE_HOST_DEVICE void gather_gradient(const T* grad_cells, const float* row_weights,
                                          const float* column_weights,
                                          const RoiAlignSwitches& switches, int channels,
                                          float* sums) {
  float mine[V] = {};
  for (int row = 0; row < switches.rows; ++row) {
    if (row_weights[row] == 0) continue;
    for (int column = 0; column < switches.columns; ++column) {
      const float weight = row_weights[row] * column_weights[column];
      if (weight == 0) continue;
      const auto cells = *reinterpret_cast<const Pack<T, V>*>(
          grad_cells + static_cast<std::int64_t>(row * switches.columns + column) * channels);
      for (int v = 0; v < V; ++v) mine[v] += weight * static_cast<float>(cells.values[v]);
    }
  }
  for (int v = 0; v < V; ++v) sums[v] += mine[v];
}

/// Writes output (R, rows, columns, C). T is float, __half or __nv_bfloat16; sums are computed in
/// float.
template <typename T>
void roi_align_forward(const Pyramid<const T>& pyramid, const Regions& regions,
                       const RoiAlignSwitches& switches, T* output, Stream stream);

/// Writes every pixel of `gradients` from grad_output (R, rows, columns, C). Each run gives the
/// same bits.
template <typename T>
void roi_align_backward(const T* grad_output, const Regions& regions,
                        const RoiAlignSwitches& switches, const Pyramid<T>& gradients,
                        Stream stream);

}  // namespace millrace::cuda
