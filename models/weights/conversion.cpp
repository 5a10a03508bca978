#include "millrace/models/weights/conversion.h"

#include <fmt/format.h>

#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/models/weights/class_rows.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/model_card.h"

namespace millrace {

Conversion convert_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                           const Scheme& scheme, const ForceWeights& force_weights) {
  check_writable_format(out);
  auto file = in_our_names(read_weights(in));
  const auto card = read_card(in);
  const bool known = file.known > 0;
  if (!known && !card)
    throw Error(fmt::format(
        "{}: none of its {} has a known name, e.g. '{}'; known are R-CNNs, RetinaNet and their "
        "backbones with the names of {}",
        in.string(), counted(std::ssize(file.tensors), "tensor"),
        file.tensors.empty() ? "" : file.tensors.front().stored_as, joined(scheme_names())));
  if (!known)  // a detector with the same names everywhere
    for (auto& tensor : file.tensors) tensor.name = tensor.stored_as;
  auto classes = classes_of(file);
  Conversion result{.from = known ? std::string(file.scheme->name) : "",
                    .tensors = file.tensors.size(),
                    .classes = classes ? classes->count : 0};
  if (classes && classes->background == Background::none) {
    classes->background = file.scheme->background;
    result.assumed_background = true;
  }
  NamedTensors ours;
  std::set<std::string> seen;
  for (const auto& [stored_as, name, value, without_norm] : file.tensors) {
    if (!seen.insert(name).second)
      throw Error(in.string() + ": tensor '" + name + "' occurs twice");
    ours.emplace_back(name, value);
    if (const auto why = not_finite(value))
      force_weights.throw_or_warn<Error>(
          fmt::format("{}: '{}': {}; the training that wrote this file diverged", in.string(),
                      stored_as.empty() ? name : stored_as, *why));
    const auto head = head_of(name);
    if (!head || !classes || value.dim() == 0) continue;
    const auto from = classes->axis(value.size(0), head->values);
    if (!from) continue;
    if (const auto rows = with_classes(value, *from, head->axis(scheme), classes->count))
      ours.back().second = *rows;
  }
  result.lost_card = card && !takes_metadata(out);
  const auto theirs = in_names_of(scheme, ours, result.unnamed);
  if (result.unnamed.size() == theirs.size())
    throw Error(fmt::format("{}: {} has no name for any of its {}, e.g. '{}'", in.string(),
                            scheme.name, counted(std::ssize(theirs), "tensor"),
                            theirs.empty() ? "" : theirs.front().first));
  write_weights(out, theirs, card ? to_metadata(*card) : Metadata());
  return result;
}

}  // namespace millrace
