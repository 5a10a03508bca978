#include "python/src/coco/rle_objects.h"

#include <fmt/format.h>

namespace millrace::python {

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
    fail_value(place, fmt::format("'size' is {} x {}, too many pixels for run lengths", sides[0],
                                  sides[1]));
  height = static_cast<std::uint32_t>(sides[0]), width = static_cast<std::uint32_t>(sides[1]);
}

std::vector<RleText> rle_texts(const nb::object& list, const char* name) {
  const Items items(list.ptr(), name, {name, 0});
  std::vector<RleText> masks(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Place place{name, i};
    PyObject* dict = dict_at(items[i], place);
    size_of(dict, place, masks[i].height, masks[i].width);
    masks[i].held = nb::borrow(keys().counts.get(dict, place));
    masks[i].counts = text_of(masks[i].held.ptr(), "counts", place);
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

nb::object rle_object(std::uint32_t height, std::uint32_t width, std::string_view counts) {
  nb::list size;
  size.append(height);
  size.append(width);
  nb::dict mask;
  mask["size"] = size;
  mask["counts"] = nb::bytes(counts.data(), counts.size());
  return mask;
}

}  // namespace millrace::python
