#include "millrace/coco/data/annotations.h"

#include <algorithm>
#include <utility>

namespace millrace::coco {
namespace {

/// Returns the position of the record with this id in records sorted by id, or -1.
template <typename Record>
std::ptrdiff_t find_id(std::span<const Record> records, std::int64_t id) {
  const auto at = std::ranges::lower_bound(records, id, {}, &Record::id);
  return at != records.end() && at->id == id ? at - records.begin() : -1;
}

}  // namespace

Box clipped_box(const Annotation& object, const Image& image) {
  const auto [x, y, width, height] = object.bbox;
  const auto inside = [](double value, std::int32_t side) {
    return static_cast<float>(std::clamp(value, 0.0, static_cast<double>(side)));
  };
  return {inside(x, image.width), inside(y, image.height), inside(x + width, image.width),
          inside(y + height, image.height)};
}

bool has_pixels(const Annotation& object, const Image& image) {
  // Pixels; tolerance because x + width - x is not exactly width.
  constexpr double kLeast = 1 - 1e-6;
  const auto inside = [](double begin, double length, std::int32_t side) {
    return std::min(begin + length, static_cast<double>(side)) - std::max(begin, 0.0);
  };
  const auto [x, y, width, height] = object.bbox;
  return inside(x, width, image.width) >= kLeast && inside(y, height, image.height) >= kLeast;
}

Rle mask_of(Segmentation shape, std::uint32_t height, std::uint32_t width) {
  if (auto* mask = std::get_if<Rle>(&shape)) return std::move(*mask);
  const auto* polygons = std::get_if<std::vector<Polygon>>(&shape);
  return from_polygons(polygons ? *polygons : std::vector<Polygon>(), height, width);
}

Segmentation Dataset::segmentation(const Annotation& object) const {
  const auto& [first, count, kind] = object.shape;
  if (kind == ShapeKind::mask) {
    const auto mask = runs.subspan(first, count);
    return Rle{mask[0], mask[1], {mask.begin() + 2, mask.end()}};
  }
  if (kind == ShapeKind::none) return {};
  std::vector<Polygon> polygons;
  polygons.reserve(count);
  std::uint64_t begin = first == 0 ? 0 : polygon_ends[first - 1];
  for (const std::uint64_t end : polygon_ends.subspan(first, count)) {
    polygons.emplace_back(coordinates.begin() + static_cast<std::ptrdiff_t>(begin),
                          coordinates.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return polygons;
}

int Dataset::category_index(std::int64_t id) const {
  return static_cast<int>(find_id(categories, id));
}

const Image* Dataset::find_image(std::int64_t id) const {
  const std::ptrdiff_t at = find_id(images, id);
  return at < 0 ? nullptr : &images[static_cast<std::size_t>(at)];
}

}  // namespace millrace::coco
