// The named tensors of a model: what is trained, saved, loaded and counted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// What an optimiser needs to know of a tensor to treat it by rule.
enum class ParameterKind {
  weight,  // weight of a convolution or linear layer
  bias,    // bias of a convolution or linear layer
  norm,    // scale and shift of a normalisation
  buffer,  // running statistics and the like: saved, never trained
};

/// Where a class axis has the background.
enum class Background { none, first, last };

/// How the rows (the first dimension) of a head's tensor belong to classes: in the order of the
/// labels, `values` rows a class, with rows for the background before or after them, or without;
/// all that `repeats` times (once per anchor, say).
struct ClassAxis {
  std::int64_t values = 0;  // 0: the rows are no classes
  Background background = Background::none;
  std::int64_t repeats = 1;

  /// The number of classes without the background; -1 where no number of classes gives so many
  /// rows.
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

/// The parameters of one model in the order in which it declared them. Owned by the model; layers
/// share the tensors, so a value changes by copying into it. Not for concurrent changes.
class Parameters {
 public:
  /// Declares a tensor and hands it back. Throws Error where the name is taken.
  at::Tensor add(std::string name, at::Tensor value, ParameterKind kind);

  /// nullptr where there is none.
  const Parameter* find(std::string_view name) const;

  /// Stops training of everything whose name starts with `prefix`.
  void freeze(std::string_view prefix);

  /// Says that the rows of everything whose name starts with `prefix` are classes.
  void set_classes(std::string_view prefix, ClassAxis axis);

  /// Number of values in tensors that are trained, and in all.
  std::int64_t trainable_count() const;
  std::int64_t count() const;

  std::vector<Parameter>::const_iterator begin() const { return all_.begin(); }
  std::vector<Parameter>::const_iterator end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }

 private:
  std::vector<Parameter> all_;
};

}  // namespace millrace
