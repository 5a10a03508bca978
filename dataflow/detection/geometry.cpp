#include "millrace/dataflow/detection/geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace millrace {
namespace {

/// Clips polygons to one side of a line: `sign` * coordinate <= `sign` * bound.
struct HalfPlane {
  std::size_t axis;  // 0 = x, 1 = y
  double bound, sign;

  bool holds(const double* point) const { return sign * point[axis] <= sign * bound; }

  coco::Polygon operator()(const coco::Polygon& polygon) const {
    coco::Polygon kept;
    const double* from = polygon.data() + polygon.size() - 2;
    for (const double* to = polygon.data(); to != polygon.data() + polygon.size(); to += 2) {
      if (holds(from) != holds(to)) {
        const double share = (bound - from[axis]) / (to[axis] - from[axis]);
        double crossing[2];
        crossing[axis] = bound;
        crossing[1 - axis] = from[1 - axis] + share * (to[1 - axis] - from[1 - axis]);
        kept.insert(kept.end(), crossing, crossing + 2);
      }
      if (holds(to)) kept.insert(kept.end(), to, to + 2);
      from = to;
    }
    return kept;
  }
};

/// Moves polygons and clips them to the image. Returns true if anything was cut.
bool move_into(std::vector<coco::Polygon>& polygons, const cv::Matx23d& matrix, cv::Size size) {
  bool cut = false;
  for (auto& polygon : polygons) {
    for (std::size_t i = 0; i < polygon.size(); i += 2) {
      const auto point = transformed(polygon[i], polygon[i + 1], matrix);
      polygon[i] = point[0], polygon[i + 1] = point[1];
    }
    auto inside = clipped(polygon, size);
    cut = cut || inside != polygon;
    polygon = std::move(inside);
  }
  std::erase_if(polygons, [](const coco::Polygon& polygon) { return polygon.empty(); });
  return cut;
}

double area_of(const coco::Segmentation& shape, const Box& box) {
  return std::holds_alternative<std::monostate>(shape) ? box.area() : coco::shape_area(shape);
}

/// Moves objects into an image of `size`; `move_mask` moves run-length masks. A box that remains
/// upright and whole is moved itself, since annotated boxes are not the bounds of their polygons.
template <class MoveMask>
void move_into(Instances& objects, const cv::Matx23d& matrix, cv::Size size,
               const Visibility& visibility, MoveMask move_mask) {
  const bool upright = matrix(0, 1) == 0 && matrix(1, 0) == 0;
  const double growth = std::abs(matrix(0, 0) * matrix(1, 1) - matrix(0, 1) * matrix(1, 0));
  std::vector<bool> stays(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    auto& shape = objects.segmentations[i];
    auto& box = objects.boxes[i];
    const double before = growth * area_of(shape, box);
    const Box whole = transformed(box, matrix);
    box = clipped(whole, size);
    bool cut = box != whole;
    if (auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      cut = move_into(*polygons, matrix, size);
      if ((cut || !upright) && !polygons->empty()) box = bounds(*polygons);
    } else if (auto* mask = std::get_if<coco::Rle>(&shape)) {
      const Box around = transformed(coco::bounding_box(*mask), matrix);
      cut = clipped(around, size) != around;
      *mask = move_mask(*mask);
      if (cut || !upright) box = coco::bounding_box(*mask);
    }
    const bool thin = cut && (box.width() < 1 || box.height() < 1);
    stays[i] = !thin && visibility.holds(before, area_of(shape, box));
  }
  filter_objects(objects, stays);
}

}  // namespace

coco::Polygon clipped(const coco::Polygon& polygon, cv::Size image) {
  const double width = image.width, height = image.height;
  auto left = polygon;
  for (const auto& side :
       {HalfPlane{0, 0, -1}, HalfPlane{0, width, 1}, HalfPlane{1, 0, -1}, HalfPlane{1, height, 1}})
    if (!left.empty()) left = side(left);
  if (left.size() < 6 || bounds({&left, 1}).area() == 0) return {};
  return left;
}

Box clipped(const Box& box, cv::Size image) {
  const auto width = static_cast<float>(image.width), height = static_cast<float>(image.height);
  return {std::clamp(box.x1, 0.F, width), std::clamp(box.y1, 0.F, height),
          std::clamp(box.x2, 0.F, width), std::clamp(box.y2, 0.F, height)};
}

Box bounds(std::span<const coco::Polygon> polygons) {
  double low[2] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  double high[2] = {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::lowest()};
  for (const auto& polygon : polygons)
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      low[i % 2] = std::min(low[i % 2], polygon[i]);
      high[i % 2] = std::max(high[i % 2], polygon[i]);
    }
  return {static_cast<float>(low[0]), static_cast<float>(low[1]), static_cast<float>(high[0]),
          static_cast<float>(high[1])};
}

cv::Vec2d transformed(double x, double y, const cv::Matx23d& matrix) {
  return matrix * cv::Vec3d(x, y, 1);
}

Box transformed(const Box& box, const cv::Matx23d& matrix) {
  coco::Polygon corners;
  for (const float x : {box.x1, box.x2})
    for (const float y : {box.y1, box.y2}) {
      const auto corner = transformed(x, y, matrix);
      corners.insert(corners.end(), {corner[0], corner[1]});
    }
  return bounds({&corners, 1});
}

cv::Matx23d inverse(const cv::Matx23d& matrix) {
  const double a = matrix(0, 0), b = matrix(0, 1), c = matrix(1, 0), d = matrix(1, 1);
  const double determinant = a * d - b * c;
  if (!(std::abs(determinant) > 0))
    throw std::invalid_argument("warp: the matrix is not invertible");
  const cv::Matx22d back(d / determinant, -b / determinant, -c / determinant, a / determinant);
  const auto origin = back * cv::Vec2d(matrix(0, 2), matrix(1, 2));
  return {back(0, 0), back(0, 1), -origin[0], back(1, 0), back(1, 1), -origin[1]};
}

void mirror(Instances& objects, std::int32_t side, Direction direction) {
  const auto far = static_cast<float>(side);
  const std::size_t axis = direction == Direction::horizontal ? 0 : 1;
  for (auto& box : objects.boxes)
    box = axis == 0 ? Box{far - box.x2, box.y1, far - box.x1, box.y2}
                    : Box{box.x1, far - box.y2, box.x2, far - box.y1};
  for (auto& shape : objects.segmentations) {
    if (auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      for (auto& polygon : *polygons)
        for (std::size_t i = axis; i < polygon.size(); i += 2) polygon[i] = far - polygon[i];
    } else if (auto* mask = std::get_if<coco::Rle>(&shape)) {
      *mask = mirrored(*mask, direction);
    }
  }
}

void resize(Instances& objects, std::int32_t width, std::int32_t height, float scale_x,
            float scale_y, Sampling sampling) {
  for (auto& box : objects.boxes)
    box = {box.x1 * scale_x, box.y1 * scale_y, box.x2 * scale_x, box.y2 * scale_y};
  for (auto& shape : objects.segmentations) {
    if (auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      for (auto& polygon : *polygons)
        for (std::size_t i = 0; i < polygon.size(); ++i)
          polygon[i] *= i % 2 == 0 ? scale_x : scale_y;
    } else if (auto* mask = std::get_if<coco::Rle>(&shape)) {
      *mask = resized(*mask, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                      sampling);
    }
  }
}

coco::Rle rasterised(const coco::Segmentation& shape, cv::Size image) {
  return coco::mask_of(shape, static_cast<std::uint32_t>(image.height),
                       static_cast<std::uint32_t>(image.width));
}

void crop(Instances& objects, const cv::Rect& window, const Visibility& visibility) {
  move_into(objects, cv::Matx23d(1, 0, -window.x, 0, 1, -window.y), window.size(), visibility,
            [&](const coco::Rle& mask) {
              return coco::window(mask, window.x, window.y,
                                  static_cast<std::uint32_t>(window.height),
                                  static_cast<std::uint32_t>(window.width));
            });
}

void warp(Instances& objects, const cv::Matx23d& matrix, cv::Size size,
          const Visibility& visibility) {
  move_into(objects, matrix, size, visibility,
            [&](const coco::Rle& mask) { return warped(mask, matrix, size); });
}

void remove_covered_pixels(Instances& objects, const coco::Rle& hidden,
                           const Visibility& visibility) {
  std::vector<bool> stays(objects.size(), true);
  for (std::size_t i = 0; i < objects.size(); ++i) {
    auto& shape = objects.segmentations[i];
    if (std::holds_alternative<std::monostate>(shape)) continue;
    const auto mask =
        rasterised(shape, {static_cast<int>(hidden.width), static_cast<int>(hidden.height)});
    auto rest = coco::difference(mask, hidden);
    const auto before = coco::area(mask), after = coco::area(rest);
    if (after == before) continue;
    stays[i] = visibility.holds(static_cast<double>(before), static_cast<double>(after));
    objects.boxes[i] = coco::bounding_box(rest);
    shape = std::move(rest);
  }
  filter_objects(objects, stays);
}

}  // namespace millrace
