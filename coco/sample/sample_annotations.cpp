#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <opencv2/imgproc.hpp>

#include "millrace/coco/masks/masks.h"
#include "millrace/coco/sample/sample_scene.h"
#include "millrace/coco/sample/sample_shapes.h"

namespace millrace::coco {
namespace {

using Json = nlohmann::ordered_json;

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

Rle rle_of(const cv::Mat1b& mask) {
  return encode(mask.data, static_cast<std::uint32_t>(mask.rows),
                static_cast<std::uint32_t>(mask.cols));
}

/// Returns a boundary with fewer corners that differs by at most `tolerance` pixels.
Polygon simplified(const Boundary& boundary, double tolerance) {
  std::vector<cv::Point2f> corners;
  cv::approxPolyDP(boundary.points, corners, tolerance, /*closed=*/true);
  Polygon polygon;
  for (const auto corner : corners) polygon.insert(polygon.end(), {corner.x, corner.y});
  return polygon;
}

struct Shape {
  Json segmentation;
  Rle mask;  // the mask of the segmentation
};

/// Returns the coarsest polygons with nearly all pixels, preferably with the mask's box; nullopt
/// for a mask with holes.
std::optional<Shape> as_polygons(const cv::Mat1b& visible) {
  constexpr double least_iou = 0.98;
  constexpr std::uint8_t crowd = 0;
  auto boundaries = trace_boundaries(visible);
  // Objects in front leave parts and holes of a few pixels at their edges.
  std::erase_if(boundaries, [](const Boundary& one) { return one.points.size() < 9; });
  if (boundaries.empty() || std::ranges::any_of(boundaries, &Boundary::hole)) return std::nullopt;
  const auto wanted = rle_of(visible);
  std::optional<Shape> close;
  for (const double tolerance : {0.8, 0.6, 0.45, 0.3, 0.0}) {
    if (close && tolerance == 0) break;  // only the smallest shapes need all points
    std::vector<Polygon> polygons;
    for (const auto& boundary : boundaries) polygons.push_back(simplified(boundary, tolerance));
    if (std::ranges::any_of(polygons, [](const Polygon& p) { return p.size() < 6; })) continue;
    const auto drawn = from_polygons(polygons, wanted.height, wanted.width);
    if (mask_iou({&drawn, 1}, {&wanted, 1}, {&crowd, 1})[0] < least_iou) continue;
    if (bounding_box(drawn) == bounding_box(wanted)) return Shape{polygons, drawn};
    if (!close) close = Shape{polygons, drawn};
  }
  return close;
}

Shape shape_of(const Thing& thing, const cv::Mat1b& visible) {
  if (!thing.crowd)
    if (auto shape = as_polygons(visible)) return *std::move(shape);
  auto mask = rle_of(visible);
  Json counts = thing.crowd ? Json(mask.counts) : Json(encode_counts(mask));
  return {{{"counts", std::move(counts)}, {"size", {mask.height, mask.width}}}, std::move(mask)};
}

}  // namespace

std::vector<Boundary> trace_boundaries(const cv::Mat1b& mask) {
  Walker walker(mask);
  std::vector<Boundary> boundaries;
  for (int y = 0; y < mask.rows; ++y)
    for (int x = 0; x < mask.cols; ++x)
      if (walker.starts_at(x, y)) boundaries.push_back(walker.walk(x, y));
  return boundaries;
}

std::string annotate(const Scene& scene, std::int64_t image_id) {
  std::string text;
  for (std::size_t i = 0; i < scene.things.size(); ++i) {
    const auto& thing = scene.things[i];
    if (!thing.kind) continue;
    auto [segmentation, mask] = shape_of(thing, scene.visible(i));
    const auto box = bounding_box(mask);
    const Json annotation = {{"segmentation", std::move(segmentation)},
                             {"area", area(mask)},
                             {"iscrowd", thing.crowd ? 1 : 0},
                             {"image_id", image_id},
                             {"bbox", {box.x1, box.y1, box.width(), box.height()}},
                             {"category_id", *thing.kind + 1},
                             {"id", 100 * image_id + static_cast<std::int64_t>(i)}};
    if (!text.empty()) text += ",\n";
    text += annotation.dump();
  }
  return text;
}

}  // namespace millrace::coco
