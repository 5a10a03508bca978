// The named tensors of a model: those that are trained, saved, loaded and counted.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"

namespace millrace {

/// The rule by which an optimizer treats a tensor.
enum class ParameterKind {
  weight,  // weight of a convolution or linear layer
  bias,    // bias of a convolution or linear layer
  norm,    // scale and shift of a normalisation
  buffer,  // not trained but saved, e.g. running statistics
};

/// The position of the background on a class axis.
enum class Background { none, first, last };
inline std::vector<std::string> value_names(Background) { return {"none", "first", "last"}; }

/// The mapping of a head's rows (the first dimension) to classes: in label order, `values` rows per
/// class, with rows for the background before or after them, or without; the whole `repeats` times
/// (e.g. once per anchor).
struct ClassAxis {
  std::int64_t values = 0;  // 0 = the rows are not classes
  Background background = Background::none;
  std::int64_t repeats = 1;

  /// Returns the number of classes without the background; -1 if no number gives `rows`.
  std::int64_t classes(std::int64_t rows) const {
    if (values == 0 || rows % (values * repeats) != 0) return -1;
    return rows / (values * repeats) - (background != Background::none);
  }
};

struct Parameter {
  std::string name;  // as in torchvision's state dict: "backbone.body.layer1.0.conv1.weight"
  at::Tensor value;  // fp32
  ParameterKind kind = ParameterKind::weight;
  ClassAxis classes = {};

  bool trainable() const { return value.requires_grad(); }
};

/// The parameters of one model, in the order of declaration. Owned by the model; layers share the
/// tensors, so change values by copying into them. Not thread-safe.
class Parameters {
 public:
  /// Declares a tensor and returns it. Throws Error if the name already exists.
  at::Tensor add(std::string name, at::Tensor value, ParameterKind kind) {
    if (find(name)) throw Error("parameter '" + name + "' is declared twice");
    value.set_requires_grad(kind != ParameterKind::buffer);
    all_.push_back({std::move(name), value, kind});
    return value;
  }

  /// Returns nullptr if not found.
  const Parameter* find(std::string_view name) const {
    const auto found = std::ranges::find(all_, name, &Parameter::name);
    return found == all_.end() ? nullptr : &*found;
  }

  /// Freezes every tensor whose name starts with `prefix`.
  void freeze(std::string_view prefix) {
    for (auto& parameter : all_)
      if (parameter.name.starts_with(prefix)) parameter.value.set_requires_grad(false);
  }

  /// Declares the class axis of every tensor whose name starts with `prefix`.
  void set_classes(std::string_view prefix, ClassAxis axis) {
    for (auto& parameter : all_)
      if (parameter.name.starts_with(prefix)) parameter.classes = axis;
  }

  /// Counts a change of values, which invalidates everything computed from them.
  void mark_changed() { ++changes_; }
  std::int64_t changes() const { return changes_; }

  /// Number of values in the trained tensors, and in all.
  std::int64_t trainable_count() const {
    std::int64_t total = 0;
    for (const auto& parameter : all_)
      if (parameter.trainable()) total += parameter.value.numel();
    return total;
  }
  std::int64_t count() const {
    std::int64_t total = 0;
    for (const auto& parameter : all_) total += parameter.value.numel();
    return total;
  }

  std::vector<Parameter>::const_iterator begin() const { return all_.begin(); }
  std::vector<Parameter>::const_iterator end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }

 private:
  std::vector<Parameter> all_;
  std::int64_t changes_ = 0;
};

}  // namespace millrace
