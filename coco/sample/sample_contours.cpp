#include "millrace/coco/sample/sample_shapes.h"

#include <array>

namespace millrace::coco {
namespace {

/// The four directions along pixel edges, clockwise: right, down, left, up.
constexpr std::array<std::array<int, 2>, 4> kStep = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};

/// Walks along edges with the inside on its right.
class Walker {
 public:
  explicit Walker(const cv::Mat1b& mask) : mask_(mask), walked_(mask.size(), std::uint8_t{0}) {}

  /// Returns whether the upper edge of this pixel is a boundary that no walk has passed.
  bool starts_at(int x, int y) const { return inside(x, y) && !inside(x, y - 1) && !walked_(y, x); }

  /// Returns the closed boundary that begins at the upper edge of pixel (x, y).
  Boundary walk(int x, int y) {
    Boundary boundary;
    const int start_x = x, start_y = y;
    int way = 0;
    double twice_area = 0;
    do {
      const auto [dx, dy] = kStep[way];
      boundary.points.emplace_back(static_cast<float>(x + 0.5 * dx),
                                   static_cast<float>(y + 0.5 * dy));
      if (way == 0) walked_(y, x) = 1;
      twice_area += x * dy - y * dx;
      x += dx;
      y += dy;
      // The two pixels ahead, on the right and on the left, decide the turn at the corner.
      if (!inside_ahead(x, y, way))
        way = (way + 1) % 4;
      else if (inside_ahead(x, y, (way + 3) % 4))
        way = (way + 3) % 4;
    } while (x != start_x || y != start_y || way != 0);
    boundary.hole = twice_area < 0;
    return boundary;
  }

 private:
  bool inside(int x, int y) const {
    return x >= 0 && y >= 0 && x < mask_.cols && y < mask_.rows && mask_(y, x) != 0;
  }

  /// Returns whether the pixel ahead on the right of corner (x, y) is inside; with `way - 1`, the
  /// one on the left.
  bool inside_ahead(int x, int y, int way) const {
    static constexpr std::array<std::array<int, 2>, 4> kRight = {
        {{0, 0}, {-1, 0}, {-1, -1}, {0, -1}}};
    return inside(x + kRight[way][0], y + kRight[way][1]);
  }

  const cv::Mat1b& mask_;
  cv::Mat1b walked_;  // upper edges already passed
};

}  // namespace

std::vector<Boundary> trace_boundaries(const cv::Mat1b& mask) {
  Walker walker(mask);
  std::vector<Boundary> boundaries;
  for (int y = 0; y < mask.rows; ++y)
    for (int x = 0; x < mask.cols; ++x)
      if (walker.starts_at(x, y)) boundaries.push_back(walker.walk(x, y));
  return boundaries;
}

}  // namespace millrace::coco
