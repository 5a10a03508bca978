// Polygons as pixels, exactly as COCO's rleFrPoly: the outline is walked on a grid of fifths of a pixel,
// and where it crosses the middle of a pixel column, inside and outside swap.
// COCO lists every grid point of the outline; only the crossings matter, so only they are computed here.
#include <algorithm>
#include <cmath>

#include "coco/masks.h"
#include "coco/run_writer.h"

namespace millrace::coco {
namespace {

constexpr std::int64_t kScale = 5;   // grid steps a pixel
constexpr std::int64_t kMiddle = 2;  // grid columns 5c+2 and 5c+3 meet in the middle of pixel c

/// A coordinate on the grid, rounded as COCO does (towards zero after adding a half). Coordinates so far out
/// that C's conversion would be undefined stay at a bound; nothing out there is visible.
std::int64_t on_grid(double coordinate) {
  constexpr double kFar = 1e9;
  const double scaled = kScale * coordinate + .5;
  if (!(scaled > -kFar)) return static_cast<std::int64_t>(-kFar);
  return static_cast<std::int64_t>(std::min(scaled, kFar));
}

/// One side of the outline, on the grid. COCO steps along its longer extent, from the lesser end.
class Edge {
 public:
  Edge(std::int64_t xs, std::int64_t ys, std::int64_t xe, std::int64_t ye)
      : xs_(xs), ys_(ys), xe_(xe), ye_(ye), flat_(std::abs(xe - xs) >= std::abs(ye - ys)) {
    if (flat_ ? xs_ > xe_ : ys_ > ye_) std::swap(xs_, xe_), std::swap(ys_, ye_);
    const auto dx = static_cast<double>(xe_ - xs_), dy = static_cast<double>(ye_ - ys_);
    slope_ = flat_ ? dy / dx : dx / dy;
  }

  std::int64_t left() const { return std::min(xs_, xe_); }
  std::int64_t right() const { return std::max(xs_, xe_); }

  /// The upper of the two rows where the edge leaves the grid column `column` for the next one.
  std::int64_t row_leaving(std::int64_t column) const {
    if (flat_) return std::min(across(column - xs_), across(column + 1 - xs_));
    // Solved for the step, then settled with COCO's own rounding.
    auto step = static_cast<std::int64_t>((static_cast<double>(column - xs_) + .5) / slope_);
    step = std::clamp<std::int64_t>(step, 0, ye_ - ys_ - 1);
    const auto reached = [&](std::int64_t s) { return (across(s) <= column) == (slope_ > 0); };
    while (step > 0 && !reached(step)) --step;
    while (reached(step + 1)) ++step;
    return ys_ + step;
  }

 private:
  /// The other coordinate after so many steps; C's conversion drops the fraction.
  std::int64_t across(std::int64_t steps) const {
    const auto start = static_cast<double>(flat_ ? ys_ : xs_);
    return static_cast<std::int64_t>(start + slope_ * static_cast<double>(steps) + .5);
  }

  std::int64_t xs_, ys_, xe_, ye_;
  bool flat_;
  double slope_;
};

/// Where the outline crosses pixel columns, as positions counted down the columns, ascending.
class Crossings {
 public:
  Crossings(std::span<const double> polygon, std::uint32_t height, std::uint32_t width)
      : height_(height), width_(width) {
    const std::size_t points = polygon.size() / 2;
    for (std::size_t i = 0; i < points; ++i) {
      const std::size_t next = i + 1 < points ? i + 1 : 0;
      follow({on_grid(polygon[2 * i]), on_grid(polygon[2 * i + 1]), on_grid(polygon[2 * next]),
              on_grid(polygon[2 * next + 1])});
    }
    std::sort(positions_.begin(), positions_.end());
    if (positions_.size() % 2 == 1) positions_.push_back(height * width);
  }

  /// Calls `inside(begin, end)` for each stretch of inside pixels.
  template <typename F>
  void each(F inside) const {
    for (std::size_t i = 0; i < positions_.size(); i += 2) inside(positions_[i], positions_[i + 1]);
  }

 private:
  void follow(const Edge& edge) {
    const std::int64_t left = std::max<std::int64_t>(edge.left(), 0);
    std::int64_t pixel = (left + kScale - 1 - kMiddle) / kScale;
    for (; pixel < width_ && pixel * kScale + kMiddle < edge.right(); ++pixel) {
      const auto row = static_cast<double>(edge.row_leaving(pixel * kScale + kMiddle));
      const double down = std::ceil(std::clamp((row + .5) / kScale - .5, 0., double(height_)));
      positions_.push_back(static_cast<std::uint32_t>(pixel) * height_ +
                           static_cast<std::uint32_t>(down));
    }
  }

  std::uint32_t height_, width_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace

Rle from_polygons(std::span<const Polygon> polygons, std::uint32_t height, std::uint32_t width) {
  std::vector<Rle> parts;
  parts.reserve(polygons.size());
  for (const Polygon& polygon : polygons) {
    RunWriter part(height, width);
    Crossings(polygon, height, width).each([&](std::uint32_t begin, std::uint32_t end) {
      part.add(begin, end);
    });
    parts.push_back(std::move(part).finish());
  }
  if (parts.empty()) return RunWriter(height, width).finish();
  return parts.size() == 1 ? std::move(parts[0]) : merge(parts);
}

void rasterize_in_box(std::span<const Polygon> polygons, const Box& box, int size,
                      std::uint8_t* out) {
  constexpr double kThinnest = 0.1;  // pixels; detectron2's guard against a box without extent
  const double scale_x = size / std::max<double>(double{box.x2} - box.x1, kThinnest);
  const double scale_y = size / std::max<double>(double{box.y2} - box.y1, kThinnest);
  const auto side = static_cast<std::uint32_t>(size);
  std::fill_n(out, std::size_t{side} * side, std::uint8_t{0});
  Polygon scaled;
  for (const Polygon& polygon : polygons) {
    scaled.resize(polygon.size());
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      scaled[i] = i % 2 == 0 ? (polygon[i] - box.x1) * scale_x : (polygon[i] - box.y1) * scale_y;
    }
    Crossings(scaled, side, side).each([&](std::uint32_t begin, std::uint32_t end) {
      for (std::uint32_t i = begin; i < end; ++i) out[i % side * side + i / side] = 1;
    });
  }
}

}  // namespace millrace::coco
