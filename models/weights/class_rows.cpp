#include "millrace/models/weights/class_rows.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <utility>

#include "millrace/models/weights/name_pattern.h"

namespace millrace {
namespace {

using HeadKind = ClassHead::Kind;

/// Heads by our names. A cascade has a classifier for each stage; its boxes are class-agnostic.
constexpr std::pair<std::string_view, ClassHead> kHeads[] = {
    {"roi_heads.box_predictor.cls_score", {HeadKind::scores, 1}},
    {"roi_heads.box_predictor.{a}.cls_score", {HeadKind::scores, 1}},
    {"roi_heads.box_predictor.bbox_pred", {HeadKind::boxes, 4}},
    {"roi_heads.mask_predictor.mask_fcn_logits", {HeadKind::masks, 1}},
};

constexpr std::int64_t kRawCocoIds = 90, kCocoCategories = 80;
/// Ids below 91 that COCO does not use.
constexpr std::array<std::int64_t, 10> kUnusedCocoIds = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83};

/// Returns the file's class for each wanted class.
std::optional<std::vector<std::int64_t>> sources(std::int64_t from, std::int64_t to) {
  const bool raw_ids = from == kRawCocoIds && to == kCocoCategories;
  if (from != to && !raw_ids) return {};
  std::vector<std::int64_t> classes;
  for (std::int64_t label = 0; label < from; ++label)
    if (!raw_ids || std::ranges::count(kUnusedCocoIds, label + 1) == 0) classes.push_back(label);
  return classes;
}

/// Returns the number of rows of the first head of this kind; 0 = not found.
std::int64_t rows_of(const TranslatedTensors& file, HeadKind kind) {
  for (const auto& tensor : file.tensors) {
    const auto head = head_of(tensor.name);
    if (head && head->kind == kind && tensor.value.dim() > 0) return tensor.value.size(0);
  }
  return 0;
}

/// Reshapes to (repeats, places, values, ...), with a place for each class and the background.
at::Tensor by_place(const at::Tensor& value, const ClassAxis& axis) {
  auto shape = value.sizes().vec();
  shape[0] /= axis.values * axis.repeats;
  shape.insert(shape.begin(), axis.repeats);
  shape.insert(shape.begin() + 2, axis.values);
  return value.reshape(shape);
}

/// Returns the index of the background among `places`; -1 = none.
std::int64_t background_place(const ClassAxis& axis, std::int64_t places) {
  if (axis.background == Background::none) return -1;
  return axis.background == Background::first ? 0 : places - 1;
}

}  // namespace

std::optional<ClassHead> head_of(std::string_view name) {
  const auto layer = name.substr(0, name.rfind('.'));
  for (const auto& [pattern, head] : kHeads)
    if (match_name(pattern, layer)) return head;
  return {};
}

ClassAxis ClassHead::axis(const Scheme& scheme) const {
  const bool has_background = kind == HeadKind::scores ||
                              (kind == HeadKind::boxes && scheme.background == Background::first) ||
                              (kind == HeadKind::masks && scheme.background_has_mask);
  return {values, has_background ? scheme.background : Background::none};
}

std::optional<ClassAxis> FileClasses::axis(std::int64_t rows, std::int64_t values) const {
  if (rows == values * (count + 1)) return ClassAxis{values, background};
  if (rows == values * count) return ClassAxis{values, Background::none};
  return {};
}

std::optional<FileClasses> classes_of(const TranslatedTensors& file) {
  const auto scores = rows_of(file, HeadKind::scores);
  if (scores < 2) return {};
  const auto masks = rows_of(file, HeadKind::masks);
  const auto boxes = rows_of(file, HeadKind::boxes);
  FileClasses classes{scores - 1, Background::none};
  if (!file.scheme->background_has_mask)
    classes.background = file.scheme->background;  // these names have one order only
  else if (masks == scores || (masks == 0 && boxes == 4 * scores))
    classes.background = Background::first;
  else if (masks == scores - 1 || (boxes == 4 * (scores - 1) && scores > 2))
    classes.background = Background::last;
  return classes;
}

std::vector<std::int64_t> same_names(const std::vector<std::string>& from,
                                     const std::vector<std::string>& to) {
  std::vector<std::int64_t> chosen;
  for (const auto& name : to) {
    const auto found = std::ranges::find(from, name);
    chosen.push_back(found == from.end() ? -1 : found - from.begin());
  }
  return chosen;
}

at::Tensor with_chosen_classes(const at::Tensor& initial, const ClassAxis& to,
                               const at::Tensor& value, const ClassAxis& from,
                               std::span<const std::int64_t> chosen) {
  auto result = initial.detach().clone();
  const auto source = by_place(value, from), target = by_place(result, to);  // a view of the result
  const auto take = [&](std::int64_t place, std::int64_t from_place) {
    target.select(1, place).copy_(source.select(1, from_place));
  };
  for (std::size_t k = 0; k < chosen.size(); ++k)
    if (chosen[k] >= 0)
      take(static_cast<std::int64_t>(k) + (to.background == Background::first),
           chosen[k] + (from.background == Background::first));
  const auto background = background_place(to, target.size(1)),
             other = background_place(from, source.size(1));
  if (background >= 0 && other >= 0) take(background, other);
  if (background >= 0 && other < 0) target.select(1, background).zero_();
  return result;
}

std::optional<at::Tensor> with_classes(const at::Tensor& value, const ClassAxis& from,
                                       const ClassAxis& to, std::int64_t to_classes) {
  const auto chosen = sources(from.classes(value.size(0)), to_classes);
  if (!chosen) return {};
  auto shape = value.sizes().vec();
  shape[0] = (to_classes + (to.background != Background::none)) * to.values;
  return with_chosen_classes(at::zeros(shape, value.options()), to, value, from, *chosen);
}

}  // namespace millrace
