#include "python/src/coco/index.h"

#include <algorithm>
#include <functional>

namespace millrace::python {

void expect_ascending(std::span<const std::int64_t> ids, const char* name) {
  if (ids.empty() || std::ranges::adjacent_find(ids, std::greater_equal<>()) != ids.end())
    throw Unusual(fmt::format("{} are empty or not in ascending order", name));
}

PyObject* Index::find(PyObject* dict, std::int64_t id) {
  const nb::object key = nb::steal(PyLong_FromLongLong(id));
  PyObject* value = PyDict_GetItemWithError(dict, key.ptr());
  if (!value && PyErr_Occurred()) nb::raise_python_error();
  return value;
}

std::pair<std::uint32_t, std::uint32_t> Index::size(std::int64_t id) const {
  PyObject* image = find(images, id);
  if (!image) throw nb::key_error(fmt::format("image {} is not in the data set", id).c_str());
  const std::string name = fmt::format("image {}: images", id);
  const Place place{name.c_str(), 0};
  const auto side = [&](const Key& key) {
    const std::int64_t pixels = id_of(key.get(image, place), key.name(), place);
    if (pixels < 0 || pixels > (1 << 20))
      throw nb::value_error(
          fmt::format("image {}: '{}' is {}, expected 0 .. 1048576", id, key.name(), pixels)
              .c_str());
    return static_cast<std::uint32_t>(pixels);
  };
  return {side(keys().height), side(keys().width)};
}

double read_box(PyObject* value, const Place& place, std::span<double, 4> box) {
  const Items numbers(value, "bbox", place);
  if (numbers.size() != 4)
    fail_value(place, fmt::format("'bbox' has {} numbers, not 4", numbers.size()));
  bool plain = true;
  for (std::size_t i = 0; i < 4; ++i) {
    PyObject* number = numbers[i];
    box[i] = number_of(number, "bbox", place);
    plain = plain && is_plain_number(number);
  }
  if (plain) return box[2] * box[3];
  const nb::object area = nb::steal(PyNumber_Multiply(numbers[2], numbers[3]));
  if (!area) nb::raise_python_error();
  return ordered_of(area.ptr(), "bbox", place);
}

void read_keypoints(PyObject* value, const Place& place, std::vector<double>& keypoints) {
  const Items numbers(value, "keypoints", place);
  const std::size_t count = numbers.size();
  if (count % 3 != 0 || count > 3 * UINT16_MAX)
    fail_value(place, fmt::format("'keypoints' has {} numbers; expected x y v per point", count));
  keypoints.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    PyObject* number = numbers[i];
    if (!is_plain_number(number) && !PyFloat_Check(number) && !PyLong_Check(number))
      throw Unusual(place.text() + ": 'keypoints' contains numbers of an unsupported type");
    keypoints[i] = number_of(number, "keypoints", place);
  }
}

}  // namespace millrace::python
