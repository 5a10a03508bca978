#include "python/src/coco/arrays.h"

#include <fmt/format.h>

namespace millrace::python {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

template <class To, class From>
std::vector<To> copied(const AnyArray& array) {
  const auto* data = static_cast<const From*>(array.data());
  const std::size_t rows = array.shape(0), columns = array.ndim() == 2 ? array.shape(1) : 1;
  const std::int64_t down = array.stride(0), right = array.ndim() == 2 ? array.stride(1) : 0;
  std::vector<To> values;
  values.reserve(rows * columns);
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(rows); ++r)
    for (std::int64_t c = 0; c < static_cast<std::int64_t>(columns); ++c)
      values.push_back(static_cast<To>(data[r * down + c * right]));
  return values;
}

template <class To>
std::vector<To> integers(const AnyArray& array, const std::string& name, const char* wanted) {
  const auto type = array.dtype();
  if (type == nb::dtype<std::int64_t>()) return copied<To, std::int64_t>(array);
  if (type == nb::dtype<std::int32_t>()) return copied<To, std::int32_t>(array);
  if (type == nb::dtype<std::int16_t>()) return copied<To, std::int16_t>(array);
  if (type == nb::dtype<std::uint8_t>()) return copied<To, std::uint8_t>(array);
  throw nb::type_error(fmt::format("{}: expected an array of {}", name, wanted).c_str());
}

}  // namespace

std::vector<double> numbers_of(const AnyArray& array, const std::string& name,
                               std::size_t dimensions, std::size_t last) {
  const bool fits =
      array.ndim() == dimensions && (last == 0 || array.shape(dimensions - 1) == last);
  if (!fits) {
    std::string shape;
    for (std::size_t i = 0; i < array.ndim(); ++i)
      shape += (i == 0 ? "" : ", ") + std::to_string(array.shape(i));
    throw nb::value_error(fmt::format("{}: the shape is ({}), expected {}", name, shape,
                                      last == 0 ? "(D)" : fmt::format("(D, {})", last))
                              .c_str());
  }
  if (array.dtype() == nb::dtype<float>()) return copied<double, float>(array);
  if (array.dtype() == nb::dtype<double>()) return copied<double, double>(array);
  return integers<double>(array, name, "float32, float64 or integers");
}

std::vector<std::int64_t> integers_of(const AnyArray& array, const std::string& name) {
  if (array.ndim() != 1)
    throw nb::value_error(
        fmt::format("{}: the array has {} dimensions, expected 1", name, array.ndim()).c_str());
  return integers<std::int64_t>(array, name, "integers");
}

}  // namespace millrace::python
