// How a data set lies in its bytes.
#include <algorithm>
#include <cstring>
#include <utility>

#include "coco/annotations.h"

namespace millrace::coco {
namespace {

/// Takes one array after the other from the bytes.
class Arrays {
 public:
  explicit Arrays(const std::byte* begin) : at_(begin) {}

  template <typename T>
  std::span<const T> take(std::uint64_t count) {
    const auto* first = reinterpret_cast<const T*>(at_);
    at_ += count * sizeof(T);
    return {first, static_cast<std::size_t>(count)};
  }

 private:
  const std::byte* at_;
};

/// Position of the record with this id among records that ascend by id, or -1.
template <typename Record>
std::ptrdiff_t find_id(std::span<const Record> records, std::int64_t id) {
  const auto at = std::ranges::lower_bound(records, id, {}, &Record::id);
  return at != records.end() && at->id == id ? at - records.begin() : -1;
}

}  // namespace

Dataset::Dataset(std::string name, SharedBytes memory)
    : source(std::move(name)), bytes(std::move(memory)) {
  Arrays arrays(bytes.data.get());
  const auto lengths = arrays.take<std::uint64_t>(kArrays);
  images = arrays.take<Image>(lengths[0]);
  annotations = arrays.take<Annotation>(lengths[1]);
  categories = arrays.take<Category>(lengths[2]);
  polygon_ends = arrays.take<std::uint64_t>(lengths[3]);
  coordinates = arrays.take<double>(lengths[4]);
  runs = arrays.take<std::uint32_t>(lengths[5]);
  names = arrays.take<char>(lengths[6]);
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
