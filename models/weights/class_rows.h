// The rows of heads from one order of classes into another. Where a file has the background is
// concluded from its shapes and names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/models/weights/schemes.h"

namespace millrace {

/// A head whose rows are classes.
struct ClassHead {
  enum class Kind { scores, boxes, masks };
  Kind kind;
  std::int64_t values;  // rows a class

  /// The order of its rows in a scheme.
  ClassAxis axis(const Scheme& scheme) const;
};

/// The head of a tensor, by our name; nothing if its rows are no classes.
std::optional<ClassHead> head_of(std::string_view name);

/// How the heads of a file number their classes.
struct FileClasses {
  std::int64_t count = 0;                    // without the background
  Background background = Background::none;  // none: unknown

  /// The axis of a tensor of `rows` rows, `values` per class; nothing if they are not this file's
  /// classes.
  std::optional<ClassAxis> axis(std::int64_t rows, std::int64_t values) const;
};

/// From the file's names and the shapes of its heads; nothing without a classifier. A background
/// with boxes and masks comes first (torchvision), one with neither last (detectron2).
std::optional<FileClasses> classes_of(const TranslatedTensors& file);

/// The rows of `value` in another order of classes. Rows for a background that `from` lacks are
/// zeros: nothing reads them. From the 90 classes of COCO's raw ids to 80, those of the 80
/// categories are taken; nothing if the counts differ otherwise.
std::optional<at::Tensor> with_classes(const at::Tensor& value, const ClassAxis& from,
                                       const ClassAxis& to, std::int64_t to_classes);

/// For each class of `to` the one of that name in `from`; -1: there is none.
std::vector<std::int64_t> same_names(const std::vector<std::string>& from,
                                     const std::vector<std::string>& to);

/// `living`, whose rows are in the order `to`, with the rows of class k taken from class
/// `chosen[k]` of `value`, unless that is -1. The background is taken if both have one, and becomes
/// zeros if only `to` has.
at::Tensor with_chosen_classes(const at::Tensor& living, const ClassAxis& to,
                               const at::Tensor& value, const ClassAxis& from,
                               std::span<const std::int64_t> chosen);

}  // namespace millrace
