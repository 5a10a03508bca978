// Between Python's values and the flow's: configuration trees, arrays, masks, errors.
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

/// A dict, list, number, text or path as a tree whose values come from `place`, which messages
/// name: "Flow(short_side=...)". Throws ConfigError for anything else.
Config to_config(nb::handle value, const std::string& place);

/// An array of T over memory that `owner` keeps. Not empty: `data` must stay where it is.
template <class T>
nb::object array_over(T* data, std::initializer_list<std::size_t> shape, nb::handle owner) {
  static T nothing{};  // for arrays without elements
  return nb::ndarray<nb::numpy, T>(data ? data : &nothing, shape, owner).cast();
}

/// An array of its own.
template <class T>
nb::object array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(
      kept, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return array_over(kept->data(), shape, owner);
}

/// The numbers of anything that NumPy takes for an array, of T's kind: (rows, columns), or (rows,)
/// if `columns` is 0. Throws Error that says what is wrong with `what`.
template <class T>
std::vector<T> numbers_in(nb::handle value, std::size_t columns, const std::string& what);

/// None, a list of polygons (arrays of x0 y0 x1 y1 ...), or {"size": (height, width), "counts":
/// run lengths}. `owner` keeps the memory of the arrays.
nb::object segmentation_to_python(const coco::Segmentation& shape, nb::handle owner);
/// The reverse; counts may be COCO's text. Throws Error.
coco::Segmentation segmentation_from_python(nb::handle value);

/// "ValueError: bad", and its place: the innermost line of the function that raised it.
std::string text_of(const nb::python_error& error);

/// Sets what is being handled as Python's exception: ConfigError becomes ValueError, DataError
/// millrace.data.DataError, other errors RuntimeError. REQUIRES: in a catch clause, and the GIL.
[[noreturn]] void raise_in_python();

/// Calls `work` without the GIL; its errors are Python's.
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

/// The class millrace.data.DataError: of images that cannot be used.
void add_data_error(nb::module_& module);
bool is_data_error(const nb::python_error& error);

}  // namespace millrace::python
