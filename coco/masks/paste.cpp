// Pastes a detection's mask into the image, and crops an object's mask out of it.
#include <algorithm>
#include <cmath>

#include "millrace/coco/masks/masks.h"
#include "millrace/coco/masks/run_writer.h"

namespace millrace::coco {
namespace {

/// One axis of a region over the image: the pixels that it covers, and the two cells between which
/// each pixel lies. Cells have a border of zeros, so cell 0 is before the first one.
struct Axis {
  /// Adds the next pixel at `place`, measured in cells from the centre of the first border cell.
  void add(float place, int cells) {
    const float bounded = std::clamp(place, 0.F, static_cast<float>(cells) + 1);
    const int before = std::min(static_cast<int>(bounded), cells);
    cell.push_back(before);
    weight.push_back(bounded - static_cast<float>(before));
  }

  std::uint32_t begin = 0;    // first pixel
  std::vector<int> cell;      // for each pixel, the cell before it
  std::vector<float> weight;  // for each pixel, the weight of the cell after it
};

Axis grid_axis(float low, float high, int cells, std::uint32_t pixels) {
  const float extent = high - low, count = static_cast<float>(cells);
  Axis axis;
  if (!(extent > 0) || !std::isfinite(low) || !std::isfinite(extent)) return axis;
  const float margin = extent / (2 * count);  // half a cell, the reach of bilinear weights
  const auto end = static_cast<float>(pixels);
  axis.begin = static_cast<std::uint32_t>(std::clamp(std::floor(low - margin), 0.F, end));
  const auto stop = static_cast<std::uint32_t>(std::clamp(std::ceil(high + margin), 0.F, end));
  for (std::uint32_t pixel = axis.begin; pixel < stop; ++pixel)
    axis.add((static_cast<float>(pixel) + .5F - low) / extent * count + .5F, cells);
  return axis;
}

Axis framed_axis(float low, float high, int cells, std::uint32_t pixels) {
  const float framed = static_cast<float>(cells + 2);
  const float centre = (high + low) * .5F, half = (high - low) * .5F * (framed / (framed - 2));
  Axis axis;
  constexpr float kFarthest = 1e9F;  // pixels; beyond any image
  if (!(std::abs(centre) < kFarthest) || !(std::abs(half) < kFarthest)) return axis;
  const auto begin = static_cast<std::int64_t>(centre - half),
             end = static_cast<std::int64_t>(centre + half) + 1;
  const float step = framed / static_cast<float>(std::max<std::int64_t>(end - begin, 1));
  const auto first = std::clamp<std::int64_t>(begin, 0, pixels),
             stop = std::clamp<std::int64_t>(end, 0, pixels);
  axis.begin = static_cast<std::uint32_t>(first);
  for (auto pixel = first; pixel < stop; ++pixel)
    axis.add(std::max((static_cast<float>(pixel - begin) + .5F) * step - .5F, 0.F), cells);
  return axis;
}

/// Returns the ranges of `axis` that lie between the same two cells: first[c] to first[c + 1].
std::vector<std::uint32_t> stretches(const Axis& axis, int cells) {
  std::vector<std::uint32_t> first(static_cast<std::size_t>(cells) + 2, 0);
  for (const int c : axis.cell) ++first[static_cast<std::size_t>(c) + 1];
  for (std::size_t c = 1; c < first.size(); ++c) first[c] += first[c - 1];
  return first;
}

/// Pastes the interpolated mask; a pixel is inside if `inside(probability)` is true.
template <typename Inside>
Rle pasted(const float* probabilities, int size, const Axis& rows, const Axis& columns,
           std::uint32_t height, std::uint32_t width, const Inside& inside) {
  const auto first = stretches(rows, size);
  RunWriter out(height, width);
  const auto side = static_cast<std::size_t>(size);
  // The mask at one pixel column, with a zero at both ends.
  std::vector<float> column(side + 2, 0.F);
  for (std::size_t i = 0; i < columns.cell.size(); ++i) {
    const int cell = columns.cell[i];
    const float right = columns.weight[i], left = 1 - right;
    for (std::size_t r = 0; r < side; ++r) {
      const float* row = probabilities + r * side;
      column[r + 1] = (cell > 0 ? left * row[cell - 1] : 0) + (cell < size ? right * row[cell] : 0);
    }
    const std::uint32_t top = (columns.begin + static_cast<std::uint32_t>(i)) * height + rows.begin;
    for (std::size_t c = 0; c <= side; ++c) {
      const float above = column[c], below = column[c + 1];
      const bool above_in = inside(above), below_in = inside(below);
      if (above_in && below_in) {  // everything between two inside cells is inside
        out.add(top + first[c], top + first[c + 1]);
      } else if (above_in || below_in) {
        for (std::uint32_t y = first[c]; y < first[c + 1]; ++y) {
          const float lower = rows.weight[y];
          if (inside((1 - lower) * above + lower * below)) out.add(top + y, top + y + 1);
        }
      }
    }
  }
  return std::move(out).finish();
}

}  // namespace

Rle paste(const float* probabilities, int size, const Box& box, std::uint32_t height,
          std::uint32_t width, float threshold) {
  return pasted(probabilities, size, grid_axis(box.y1, box.y2, size, height),
                grid_axis(box.x1, box.x2, size, width), height, width,
                [=](float value) { return value >= threshold; });
}

Rle paste_framed(const float* probabilities, int size, const Box& box, std::uint32_t height,
                 std::uint32_t width, float threshold) {
  return pasted(probabilities, size, framed_axis(box.y1, box.y2, size, height),
                framed_axis(box.x1, box.x2, size, width), height, width,
                [=](float value) { return value > threshold; });
}

void crop_in_box(const Rle& mask, const Box& box, int size, std::uint8_t* out) {
  constexpr double kThinnest = 0.1;  // pixels, as for polygons
  const double cell_width = std::max<double>(double{box.x2} - box.x1, kThinnest) / size;
  const double cell_height = std::max<double>(double{box.y2} - box.y1, kThinnest) / size;
  const auto side = static_cast<std::size_t>(size);
  // Returns the pixel at the centre of cell i; `pixels` if it is outside the mask.
  const auto pixel_at = [&](double low, double cell, std::size_t i, std::uint32_t pixels) {
    const double at = std::floor(low + (static_cast<double>(i) + .5) * cell);
    return at >= 0 && at < pixels ? static_cast<std::uint32_t>(at) : pixels;
  };
  std::vector<std::uint32_t> row(side);
  for (std::size_t r = 0; r < side; ++r) row[r] = pixel_at(box.y1, cell_height, r, mask.height);

  std::fill_n(out, side * side, std::uint8_t{0});
  std::size_t run = 0;
  std::uint32_t run_end = mask.counts.empty() ? 0 : mask.counts[0];
  std::uint32_t previous = mask.width;
  for (std::size_t c = 0; c < side; ++c) {
    const std::uint32_t x = pixel_at(box.x1, cell_width, c, mask.width);
    if (x == mask.width) continue;
    for (std::size_t r = 0; r < side; ++r) {
      if (row[r] == mask.height) continue;
      if (x == previous) {  // positions must ascend, so this column was already read
        out[r * side + c] = out[r * side + c - 1];
        continue;
      }
      const std::uint32_t position = x * mask.height + row[r];
      while (run_end <= position && run + 1 < mask.counts.size()) run_end += mask.counts[++run];
      out[r * side + c] = run_end > position && run % 2 == 1;
    }
    previous = x;
  }
}

}  // namespace millrace::coco
