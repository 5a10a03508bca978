#include "models/ops/roi_align_kernel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "models/ops/simd.h"

namespace millrace {
namespace {

inline void add_scaled(float* to, const float* from, float scale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += scale * from[i];
}

MILLRACE_SIMD void gather(const float* map, const MapShape& shape, const RoiTaps& roi,
                          std::int64_t size, float* output) {
  const auto channels = shape.channels;
  std::fill_n(output, size * size * channels, 0.0F);
  for (std::int64_t y = 0; y < size; ++y)
    for (std::int64_t x = 0; x < size; ++x, output += channels)
      for (const auto& row : roi.rows[y])
        for (const auto& column : roi.columns[x])
          add_scaled(output, map + (row.index * shape.width + column.index) * channels,
                     row.weight * column.weight, channels);
}

/// Takes `count` channels from where `cells` and `map` point.
MILLRACE_SIMD void scatter(const float* cells, const MapShape& shape, const RoiTaps& roi,
                           std::int64_t size, std::int64_t count, float* map) {
  for (std::int64_t y = 0; y < size; ++y)
    for (std::int64_t x = 0; x < size; ++x, cells += shape.channels)
      for (const auto& row : roi.rows[y])
        for (const auto& column : roi.columns[x])
          add_scaled(map + (row.index * shape.width + column.index) * shape.channels, cells,
                     row.weight * column.weight, count);
}

std::int64_t image_of(float number, std::int64_t images) {
  if (number >= 0 && number < static_cast<float>(images)) return static_cast<std::int64_t>(number);
  throw std::invalid_argument("roi_align: a region of image " + std::to_string(number) +
                              " in a batch of " + std::to_string(images));
}

}  // namespace

AxisTaps::AxisTaps(float start, float end, std::int64_t length, const RoiAlignOptions& options) {
  const auto scale = static_cast<float>(options.scale);
  const float shift = options.aligned ? 0.5F : 0.0F;
  const float low = start * scale - shift;
  float extent = end * scale - shift - low;
  if (!options.aligned) extent = std::max(extent, 1.0F);
  const float cell_extent = extent / static_cast<float>(options.size);
  const auto samples =
      options.sampling_ratio > 0
          ? options.sampling_ratio
          : static_cast<std::int64_t>(std::ceil(std::max(0.0F, std::min(cell_extent, 1e4F))));
  const float share = 1.0F / static_cast<float>(samples);

  ends_.push_back(0);
  for (std::int64_t cell = 0; cell < options.size; ++cell) {
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const float at =
          low + static_cast<float>(cell) * cell_extent +
          (static_cast<float>(sample) + 0.5F) * cell_extent / static_cast<float>(samples);
      if (!(at >= -1.0F && at <= static_cast<float>(length))) continue;
      const float inside = std::clamp(at, 0.0F, static_cast<float>(length - 1));
      const auto index = static_cast<std::int64_t>(inside);
      const float fraction = inside - static_cast<float>(index);
      add(ends_.back(), index, (1 - fraction) * share);
      if (fraction > 0) add(ends_.back(), index + 1, fraction * share);
    }
    ends_.push_back(taps_.size());
  }
}

/// Neighbouring samples mostly read the same rows: such a tap joins one of the last two of the cell, from `first`.
void AxisTaps::add(std::size_t first, std::int64_t index, float weight) {
  for (auto back = taps_.size(); back > first && back + 2 > taps_.size(); --back)
    if (taps_[back - 1].index == index) {
      taps_[back - 1].weight += weight;
      return;
    }
  taps_.push_back({index, weight});
}

std::vector<RoiTaps> roi_taps(const float* rois, std::int64_t count, const MapShape& shape,
                              const RoiAlignOptions& options) {
  std::vector<RoiTaps> taps;
  taps.reserve(static_cast<std::size_t>(count));
  for (const float* roi = rois; roi != rois + 5 * count; roi += 5)
    taps.push_back({image_of(roi[0], shape.images), AxisTaps(roi[2], roi[4], shape.height, options),
                    AxisTaps(roi[1], roi[3], shape.width, options)});
  return taps;
}

void roi_align_forward(const float* features, const MapShape& shape,
                       const std::vector<RoiTaps>& rois, std::int64_t size, float* output) {
  const auto image = shape.height * shape.width * shape.channels;
  const auto region = size * size * shape.channels;
  at::parallel_for(0, std::ssize(rois), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r) {
      const auto& roi = rois[static_cast<std::size_t>(r)];
      gather(features + roi.image * image, shape, roi, size, output + r * region);
    }
  });
}

void roi_align_backward(const float* grad_output, const MapShape& shape,
                        const std::vector<RoiTaps>& rois, std::int64_t size, float* grad_features) {
  constexpr std::int64_t kBlock = 16;  // channels of a cache line, which no two threads share
  const auto image = shape.height * shape.width * shape.channels;
  const auto region = size * size * shape.channels;
  const auto blocks = (shape.channels + kBlock - 1) / kBlock;
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto first = begin * kBlock;
    const auto count = std::min(end * kBlock, shape.channels) - first;
    for (std::size_t r = 0; r < rois.size(); ++r)
      scatter(grad_output + static_cast<std::int64_t>(r) * region + first, shape, rois[r], size,
              count, grad_features + rois[r].image * image + first);
  });
}

}  // namespace millrace
