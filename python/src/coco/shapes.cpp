#include "python/src/coco/shapes.h"

#include <fmt/format.h>

#include <cstring>

namespace millrace::python {
namespace {

/// Reads the 'size' of a mask. Throws ValueError or TypeError.
void size_of(PyObject* dict, const Place& place, std::uint32_t& height, std::uint32_t& width) {
  const Items size(keys().size.get(dict, place), "size", place);
  if (size.size() == 2) {
    PyObject *first = size[0], *second = size[1];
    if (PyLong_CheckExact(first) && PyLong_CheckExact(second)) {
      const long h = PyLong_AsLong(first), w = PyLong_AsLong(second);
      if (h >= 0 && w >= 0 && h <= UINT16_MAX && w <= UINT16_MAX) {  // the usual case
        height = static_cast<std::uint32_t>(h), width = static_cast<std::uint32_t>(w);
        return;
      }
      PyErr_Clear();
    }
  }
  double sides[2] = {-1, -1};
  if (size.size() != 2) fail_value(place, fmt::format("'size' has {} numbers, not 2", size.size()));
  for (std::size_t i = 0; i < 2; ++i) {
    sides[i] = number_of(size[i], "size", place);
    if (sides[i] < 0 || sides[i] > UINT32_MAX || sides[i] != static_cast<std::uint32_t>(sides[i]))
      fail_value(place,
                 fmt::format("'size' contains {}, which is not a number of pixels", sides[i]));
  }
  if (sides[0] * sides[1] > UINT32_MAX)
    fail_value(place, fmt::format("'size' is {} x {}: too many pixels for run lengths", sides[0],
                                  sides[1]));
  height = static_cast<std::uint32_t>(sides[0]), width = static_cast<std::uint32_t>(sides[1]);
}

RleText rle_text(PyObject* dict, const Place& place) {
  RleText mask;
  size_of(dict, place, mask.height, mask.width);
  mask.held = nb::borrow(keys().counts.get(dict, place));
  mask.counts = text_of(mask.held.ptr(), "counts", place);
  return mask;
}

/// Returns the run lengths of a column-major mask.
coco::Rle runs_of_columns(const std::uint8_t* pixels, std::uint32_t height, std::uint32_t width) {
  coco::Rle mask{height, width, {}};
  const std::size_t count = std::size_t{height} * width;
  bool inside = false;
  std::size_t begin = 0, i = 0;
  while (i < count) {
    const std::uint64_t same = inside ? 0x0101010101010101U : 0;
    std::uint64_t eight = 0;
    while (i + 8 <= count && (std::memcpy(&eight, pixels + i, 8), eight == same)) i += 8;
    while (i < count && (pixels[i] != 0) == inside) {
      ++i;
      if (i % 8 == 0) break;
    }
    if (i < count && (pixels[i] != 0) != inside) {
      mask.counts.push_back(static_cast<std::uint32_t>(i - begin));
      begin = i;
      inside = !inside;
    }
  }
  mask.counts.push_back(static_cast<std::uint32_t>(count - begin));
  return mask;
}

}  // namespace

std::vector<RleText> rle_texts(const nb::object& list, const char* name) {
  const Items items(list.ptr(), name, {name, 0});
  std::vector<RleText> masks;
  masks.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Place place{name, i};
    masks.push_back(rle_text(dict_at(items[i], place), place));
  }
  return masks;
}

coco::Rle runs_of(PyObject* dict, const Place& place) {
  coco::Rle mask;
  size_of(dict, place, mask.height, mask.width);
  const Items runs(keys().counts.get(dict, place), "counts", place);
  const std::uint64_t pixels = std::uint64_t{mask.height} * mask.width;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < runs.size() && sum <= pixels; ++i) {
    const double run = number_of(runs[i], "counts", place);
    if (run < 0 || run > UINT32_MAX || run != static_cast<std::uint32_t>(run))
      fail_value(place, fmt::format("'counts' contains {}, which is not a run length", run));
    mask.counts.push_back(static_cast<std::uint32_t>(run));
    sum += mask.counts.back();
  }
  if (sum != pixels)
    fail_value(place,
               fmt::format("'counts' do not add up to {} x {} pixels", mask.height, mask.width));
  return mask;
}

coco::Polygon polygon_of(PyObject* coordinates, const Place& place) {
  const Items items(coordinates, "polygon", place);
  if (items.size() < 6 || items.size() % 2 == 1)
    fail_value(place, fmt::format("a polygon has {} numbers; expected x y of three or more "
                                  "points",
                                  items.size()));
  coco::Polygon polygon(items.size());
  for (std::size_t i = 0; i < polygon.size(); ++i)
    polygon[i] = number_of(items[i], "polygon", place);
  return polygon;
}

coco::Rle mask_of_bitmap(const std::uint8_t* first, std::uint32_t height, std::uint32_t width,
                         std::int64_t down, std::int64_t right) {
  if (down == 1 && (right == std::int64_t{height} || width < 2))
    return runs_of_columns(first, height, width);
  if (right == 1 && (down == std::int64_t{width} || height < 2))
    return coco::encode(first, height, width);
  std::vector<std::uint8_t> copy;
  copy.reserve(std::size_t{height} * width);
  for (std::int64_t x = 0; x < std::int64_t{width}; ++x)
    for (std::int64_t y = 0; y < std::int64_t{height}; ++y)
      copy.push_back(first[y * down + x * right]);
  return runs_of_columns(copy.data(), height, width);
}

nb::object rle_object(std::uint32_t height, std::uint32_t width, std::string_view counts) {
  nb::list size;
  size.append(height);
  size.append(width);
  nb::dict mask;
  mask["size"] = size;
  mask["counts"] = nb::bytes(counts.data(), counts.size());
  return mask;
}

Shape shape_of(PyObject* segmentation, const Place& place) {
  if (segmentation == Py_None) return {};
  if (PyDict_Check(segmentation)) {
    PyObject* counts = keys().counts.get(segmentation, place);
    if (PyBytes_Check(counts) || PyUnicode_Check(counts)) return rle_text(segmentation, place);
    return runs_of(segmentation, place);
  }
  const Items parts(segmentation, "segmentation", place);
  std::vector<coco::Polygon> polygons;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Items part(parts[i], "polygon", place);
    if (part.size() == 4) {  // pycocotools treats four numbers as a box
      double b[4];
      for (std::size_t k = 0; k < 4; ++k) b[k] = number_of(part[k], "segmentation", place);
      const double right = b[0] + b[2], bottom = b[1] + b[3];
      polygons.push_back({b[0], b[1], b[0], bottom, right, bottom, right, b[1]});
    } else {
      polygons.push_back(polygon_of(parts[i], place));
    }
  }
  if (polygons.empty()) return {};
  return polygons;
}

coco::Rle mask_of(const Shape& shape, std::uint32_t height, std::uint32_t width) {
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape))
    return coco::from_polygons(*polygons, height, width);
  if (const auto* text = std::get_if<RleText>(&shape)) return text->decoded();
  const auto* runs = std::get_if<coco::Rle>(&shape);
  return runs ? *runs : coco::Rle{height, width, {}};
}

}  // namespace millrace::python
