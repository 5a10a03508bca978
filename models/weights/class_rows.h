// Reorders the rows of heads from one order of classes to another. The position of a file's
// background is inferred from its shapes and names.
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
  std::int64_t values;  // rows per class

  /// Returns the order of its rows in a scheme.
  ClassAxis axis(const Scheme& scheme) const;
};

/// Returns the head of a tensor by our name; nullopt if its rows are not classes.
std::optional<ClassHead> head_of(std::string_view name);

/// The classes of a file's heads.
struct FileClasses {
  std::int64_t count = 0;                    // without the background
  Background background = Background::none;  // none = unknown

  /// Returns the axis of a tensor of `rows` rows, `values` per class; nullopt if they are not this
  /// file's classes.
  std::optional<ClassAxis> axis(std::int64_t rows, std::int64_t values) const;
};

/// Infers the classes from the file's names and the shapes of its heads; nullopt without a
/// classifier. A background with boxes and masks comes first (torchvision), one with neither comes
/// last (detectron2).
std::optional<FileClasses> classes_of(const TranslatedTensors& file);

/// Returns the rows of `value` in another order of classes. Rows of a background that `from` lacks
/// are zeros, as they are unused. From the 90 classes of COCO's raw ids to 80, the rows of the 80
/// categories are selected; nullopt if the counts differ otherwise.
std::optional<at::Tensor> with_classes(const at::Tensor& value, const ClassAxis& from,
                                       const ClassAxis& to, std::int64_t to_classes);

/// Returns for each class of `to` the index of that name in `from`; -1 = not found.
std::vector<std::int64_t> same_names(const std::vector<std::string>& from,
                                     const std::vector<std::string>& to);

/// Returns `initial`, whose rows have the order `to`, with the rows of class k replaced by those of
/// class `chosen[k]` of `value`, unless that is -1. The background is copied if both have one, and
/// zeroed if only `to` has.
at::Tensor with_chosen_classes(const at::Tensor& initial, const ClassAxis& to,
                               const at::Tensor& value, const ClassAxis& from,
                               std::span<const std::int64_t> chosen);

}  // namespace millrace
