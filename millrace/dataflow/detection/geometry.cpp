#include "millrace/dataflow/detection/geometry.h"

#include <cmath>
#include <utility>

#include "millrace/dataflow/detection/transforms.h"
#include "millrace/dataflow/image/plane.h"

namespace millrace {
namespace {

/// Moves polygons and cuts them at the image; true where something was cut.
bool move_into(std::vector<coco::Polygon>& polygons, const cv::Matx23d& matrix, cv::Size size) {
  bool cut = false;
  for (auto& polygon : polygons) {
    for (std::size_t i = 0; i < polygon.size(); i += 2) {
      const auto point = moved(polygon[i], polygon[i + 1], matrix);
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

/// Takes objects along a motion into an image of `size`; `move_mask` moves run lengths. A box that
/// stays upright and whole is moved itself, since annotators' boxes are not those of their
/// polygons' points.
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
    const Box whole = moved(box, matrix);
    box = clipped(whole, size);
    bool cut = box != whole;
    if (auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      cut = move_into(*polygons, matrix, size);
      if ((cut || !upright) && !polygons->empty()) box = bounds(*polygons);
    } else if (auto* mask = std::get_if<coco::Rle>(&shape)) {
      const Box around = moved(coco::bounding_box(*mask), matrix);
      cut = clipped(around, size) != around;
      *mask = move_mask(*mask);
      if (cut || !upright) box = coco::bounding_box(*mask);
    }
    const bool thin = cut && (box.width() < 1 || box.height() < 1);
    stays[i] = !thin && visibility.holds(before, area_of(shape, box));
  }
  keep(objects, stays);
}

}  // namespace

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
  if (const auto* mask = std::get_if<coco::Rle>(&shape)) return *mask;
  const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape);
  return coco::from_polygons(polygons ? *polygons : std::vector<coco::Polygon>{},
                             static_cast<std::uint32_t>(image.height),
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

void cover(Instances& objects, const coco::Rle& hidden, const Visibility& visibility) {
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
  keep(objects, stays);
}

}  // namespace millrace
