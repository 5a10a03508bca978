// Conversion of vectors to NumPy arrays, and of CPU arrays to vectors.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace::python {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<nb::numpy, T>;
using Ids = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Returns a NumPy array that owns `values`.
template <class T>
Array<T> array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* data = held->data();
  nb::capsule owner(held.release(),
                    [](void* all) noexcept { delete static_cast<std::vector<T>*>(all); });
  return Array<T>(data, shape, owner);
}

/// Returns the numbers in an array of float32, float64 or integers with any strides. The array must
/// have this number of dimensions, the last one of size `last` (0 = any). Throws ValueError or
/// TypeError with `name` in the message.
std::vector<double> numbers_of(const nb::ndarray<nb::ro, nb::device::cpu>& array,
                               const std::string& name, std::size_t dimensions,
                               std::size_t last = 0);

/// Returns the integers in a one-dimensional array. Throws ValueError or TypeError with `name` in
/// the message.
std::vector<std::int64_t> integers_of(const nb::ndarray<nb::ro, nb::device::cpu>& array,
                                      const std::string& name);

}  // namespace millrace::python
