// NumPy arrays of vectors, and numbers of any array that lies in main memory.
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

/// A NumPy array of `values`, which it owns.
template <class T>
Array<T> array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* data = held->data();
  nb::capsule owner(held.release(),
                    [](void* all) noexcept { delete static_cast<std::vector<T>*>(all); });
  return Array<T>(data, shape, owner);
}

/// The numbers of an array of float32, float64 or integers with `dimensions`, the last of `last`
/// (0: any), of any strides. Throws ValueError or TypeError naming it.
std::vector<double> numbers_of(const nb::ndarray<nb::ro, nb::device::cpu>& array,
                               const std::string& name, std::size_t dimensions,
                               std::size_t last = 0);

/// The same of integers with one dimension.
std::vector<std::int64_t> integers_of(const nb::ndarray<nb::ro, nb::device::cpu>& array,
                                      const std::string& name);

}  // namespace millrace::python
