// One side of a polygon in COCO's rleFrPoly. Constexpr C++17, so that kernels can use it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace::coco {

/// A side of the outline on a grid of fifths of a pixel. Like COCO, steps along its longer extent
/// from the lesser end. Inside and outside swap where the outline crosses the middle of a pixel
/// column.
class PolygonEdge {
 public:
  /// Creates the side from (x0, y0) to (x1, y1) in pixels.
  constexpr PolygonEdge(double x0, double y0, double x1, double y1)
      : PolygonEdge(GridPoint{on_grid(x0), on_grid(y0)}, GridPoint{on_grid(x1), on_grid(y1)}) {}

  /// Calls `crossing(position)` for each pixel column whose middle the side crosses. `position` is
  /// the pixel, in column-major order of a height x width mask, from which on inside and outside
  /// are swapped.
  template <typename F>
  constexpr void each_crossing(std::uint32_t height, std::uint32_t width, F crossing) const {
    const std::int64_t left = std::max<std::int64_t>(std::min(xs_, xe_), 0);
    const std::int64_t right = std::max(xs_, xe_);
    std::int64_t column = (left + kScale - 1 - kMiddle) / kScale;
    for (; column < width && column * kScale + kMiddle < right; ++column)
      crossing(static_cast<std::uint32_t>(column) * height +
               row_below(row_leaving(column * kScale + kMiddle), height));
  }

 private:
  struct GridPoint {
    std::int64_t x, y;
  };

  constexpr PolygonEdge(GridPoint a, GridPoint b)
      : flat_(magnitude(b.x - a.x) >= magnitude(b.y - a.y)) {
    const bool turned = flat_ ? a.x > b.x : a.y > b.y;
    const GridPoint from = turned ? b : a, to = turned ? a : b;
    xs_ = from.x, ys_ = from.y, xe_ = to.x, ye_ = to.y;
    const auto dx = static_cast<double>(xe_ - xs_), dy = static_cast<double>(ye_ - ys_);
    slope_ = flat_ ? (dx > 0 ? dy / dx : 0) : dx / dy;
  }

  static constexpr std::int64_t kScale = 5;  // grid steps per pixel
  // The middle of column c is between grid columns 5c+2 and 5c+3.
  static constexpr std::int64_t kMiddle = 2;

  static constexpr std::int64_t magnitude(std::int64_t value) { return value < 0 ? -value : value; }

  /// Returns a coordinate on the grid, rounded like COCO (truncated after adding a half).
  /// Coordinates so far outside that C's conversion would be undefined are clamped.
  static constexpr std::int64_t on_grid(double coordinate) {
    constexpr double kFar = 1e9;
    const double scaled = kScale * coordinate + .5;
    if (!(scaled > -kFar)) return static_cast<std::int64_t>(-kFar);
    return static_cast<std::int64_t>(std::min(scaled, kFar));
  }

  /// Returns the first pixel row whose middle is not above the boundary of grid rows `row` and
  /// `row` + 1.
  static constexpr std::uint32_t row_below(std::int64_t row, std::uint32_t height) {
    const double down =
        std::clamp((static_cast<double>(row) + .5) / kScale - .5, 0., static_cast<double>(height));
    const auto whole = static_cast<std::uint32_t>(down);
    return whole + (static_cast<double>(whole) < down ? 1 : 0);  // std::ceil
  }

  /// Returns the upper of the two grid rows at which the side goes from grid column `column` to the
  /// next.
  constexpr std::int64_t row_leaving(std::int64_t column) const {
    if (flat_) return std::min(across(column - xs_), across(column + 1 - xs_));
    // Solve for the step, then correct it with COCO's own rounding.
    auto step = static_cast<std::int64_t>((static_cast<double>(column - xs_) + .5) / slope_);
    step = std::clamp<std::int64_t>(step, 0, ye_ - ys_ - 1);
    while (step > 0 && !reached(step, column)) --step;
    while (reached(step + 1, column)) ++step;
    return ys_ + step;
  }

  constexpr bool reached(std::int64_t step, std::int64_t column) const {
    return (across(step) <= column) == (slope_ > 0);
  }

  /// Returns the other coordinate after `steps`, truncated like C's conversion.
  constexpr std::int64_t across(std::int64_t steps) const {
    const auto start = static_cast<double>(flat_ ? ys_ : xs_);
    return static_cast<std::int64_t>(start + slope_ * static_cast<double>(steps) + .5);
  }

  std::int64_t xs_ = 0, ys_ = 0, xe_ = 0, ye_ = 0;
  bool flat_;
  double slope_ = 0;
};

}  // namespace millrace::coco
