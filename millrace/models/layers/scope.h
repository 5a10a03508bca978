// Where a layer declares its tensors: a prefix of names and the seed of their first values.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/weights/parameters.h"

namespace millrace {

/// A place in a model's tree of names. Initial values depend on the seed and the full name alone,
/// so that adding a layer leaves every other layer's values as they were; nor does the device
/// change them.
class Scope {
 public:
  Scope(Parameters& parameters, std::uint64_t seed, at::Device device = at::kCPU,
        std::string prefix = {})
      : parameters_(parameters), seed_(seed), device_(device), prefix_(std::move(prefix)) {}

  /// scope / "fpn" / "inner_blocks"
  Scope operator/(std::string_view child) const {
    return {parameters_, seed_, device_,
            prefix_.empty() ? std::string(child) : prefix_ + "." + std::string(child)};
  }
  Scope operator/(std::int64_t child) const { return *this / std::to_string(child); }

  at::Tensor constant(std::string_view name, at::IntArrayRef shape, double value,
                      ParameterKind kind) const;
  /// Normal values with mean 0; four-dimensional tensors are channels last in memory.
  at::Tensor normal(std::string_view name, at::IntArrayRef shape, double deviation,
                    ParameterKind kind) const;
  at::Tensor uniform(std::string_view name, at::IntArrayRef shape, double bound,
                     ParameterKind kind) const;

  at::Device device() const { return device_; }

  /// Stops training of every tensor declared so far whose name below this scope starts with
  /// `prefix`.
  void freeze(std::string_view prefix) const { parameters_.freeze(full(prefix)); }

  /// Says how the rows of a layer below this scope, which has been declared, belong to classes.
  void set_classes(std::string_view layer, const ClassAxis& axis) const {
    parameters_.set_classes(full(layer) + ".", axis);
  }

 private:
  std::string full(std::string_view name) const {
    return prefix_.empty() ? std::string(name) : prefix_ + "." + std::string(name);
  }
  at::Generator generator(std::string_view name) const;
  at::Tensor declare(std::string_view name, const at::Tensor& value, ParameterKind kind) const;

  Parameters& parameters_;
  std::uint64_t seed_;
  at::Device device_;
  std::string prefix_;
};

}  // namespace millrace
