// Conversions between Python values and the flow's: configuration trees, arrays, masks, errors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/coco/data/annotations.h"

namespace millrace::python {

namespace nb = nanobind;

/// Converts a dict, list, number, string or path to a tree. The origin of its values is `place`,
/// such as "Flow(short_side=...)", and appears in messages. Throws ConfigError for anything else.
Config to_config(nb::handle value, const std::string& place);

/// Returns a path given in Python as text. Throws ConfigError that names `place`.
std::string path_of(nb::handle value, const std::string& place);

/// Returns an array of T over memory that `owner` keeps alive. If the array is not empty, `data`
/// must not move.
template <class T>
nb::object array_over(T* data, std::initializer_list<std::size_t> shape, nb::handle owner) {
  static T nothing{};  // for arrays without elements
  return nb::ndarray<nb::numpy, T>(data ? data : &nothing, shape, owner).cast();
}

/// Returns an array that owns `values`.
template <class T>
nb::object array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(
      kept, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return array_over(kept->data(), shape, owner);
}

/// Returns the numbers in any value that NumPy can convert to an array of T, with shape [rows,
/// columns], or [rows] if `columns` is 0. Throws Error with `what` in the message.
template <class T>
std::vector<T> numbers_in(nb::handle value, std::size_t columns, const std::string& what);

/// Returns None, a list of polygons (arrays x0, y0, x1, y1, ...), or {"size": (height, width),
/// "counts": run lengths}. `owner` keeps the memory of the arrays alive.
nb::object segmentation_to_python(const coco::Segmentation& shape, nb::handle owner);
/// Converts in the other direction; counts may also be COCO's compressed string. Throws Error.
coco::Segmentation segmentation_from_python(nb::handle value);

/// Returns a description such as "ValueError: bad", with the file and line that raised the error.
std::string text_of(const nb::python_error& error);

/// Raises the exception being handled as a Python exception: ConfigError as ValueError, DataError
/// as millrace.data.DataError, others as RuntimeError. REQUIRES: called in a catch clause with the
/// GIL held.
[[noreturn]] void raise_in_python();

/// Calls `work` without the GIL and converts its errors to Python exceptions.
template <class Work>
auto without_gil(Work&& work) {
  try {
    const nb::gil_scoped_release released;
    return work();
  } catch (const nb::python_error&) {
    throw;
  } catch (...) {
    raise_in_python();
  }
}

bool is_data_error(const nb::python_error& error);

}  // namespace millrace::python
