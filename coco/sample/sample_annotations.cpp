#include <algorithm>
#include <nlohmann/json.hpp>
#include <opencv2/imgproc.hpp>

#include "millrace/coco/masks/masks.h"
#include "millrace/coco/sample/sample_scene.h"
#include "millrace/coco/sample/sample_shapes.h"

namespace millrace::coco {
namespace {

using Json = nlohmann::ordered_json;

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
