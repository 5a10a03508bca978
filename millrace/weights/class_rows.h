// The rows of heads from one order of classes into another. Files do not say where their background
// is: their shapes and names do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/weights/schemes.h"

namespace millrace {

/// A head whose rows are classes.
struct ClassHead {
  enum class Kind { scores, boxes, masks };
  Kind kind;
  std::int64_t values;  // rows a class

  /// The order of its rows where a scheme's names are.
  ClassAxis axis(const Scheme& scheme) const;
};

/// The head that a tensor belongs to, by our name; nothing where its rows are no classes.
std::optional<ClassHead> head_of(std::string_view name);

/// How the heads of a file number their classes.
struct FileClasses {
  std::int64_t count = 0;                    // without the background
  Background background = Background::none;  // none: not to be told from the file

  /// The axis of a tensor of `rows` rows, `values` a class; nothing where they are not this file's
  /// classes.
  std::optional<ClassAxis> axis(std::int64_t rows, std::int64_t values) const;
};

/// From the file's names and the shapes of its heads; nothing where it has no classifier. A
/// background that also has boxes and masks comes first (torchvision), one that has neither comes
/// last (detectron2).
std::optional<FileClasses> classes_of(const TranslatedTensors& file);

/// The rows of `value` in another order of classes. Rows for a background that `from` does not have
/// are zeros: it is only left out where nothing reads them. Where `from` has the 90 classes of
/// COCO's raw ids and `to` wants 80, those of the 80 categories are taken; nothing where the counts
/// differ otherwise.
std::optional<at::Tensor> with_classes(const at::Tensor& value, const ClassAxis& from,
                                       const ClassAxis& to, std::int64_t to_classes);

/// For each class of `to` the one of that name in `from`; -1 where there is none.
std::vector<std::int64_t> same_names(const std::vector<std::string>& from,
                                     const std::vector<std::string>& to);

/// `living`, whose rows are as `to` has them, with the rows of classes taken from `value`: for
/// class k that of `chosen[k]`, none where that is -1. The background is taken where both have one,
/// and becomes zeros where only `to` does.
at::Tensor with_chosen_classes(const at::Tensor& living, const ClassAxis& to,
                               const at::Tensor& value, const ClassAxis& from,
                               std::span<const std::int64_t> chosen);

}  // namespace millrace
