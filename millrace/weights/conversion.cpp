#include "millrace/weights/conversion.h"

#include <fmt/format.h>

#include <set>

#include "millrace/base/errors.h"
#include "millrace/weights/class_rows.h"
#include "millrace/weights/formats.h"
#include "millrace/weights/model_card.h"

namespace millrace {

Conversion convert_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                           const Scheme& scheme, const Insistence& insistence) {
  check_writable_format(out);
  const auto file = in_our_names(read_weights(in));
  const auto card = read_card(in);
  auto classes = classes_of(file);
  Conversion result{.from = std::string(file.scheme->name),
                    .tensors = file.tensors.size(),
                    .classes = classes ? classes->count : 0};
  if (classes && classes->background == Background::none) {
    classes->background = file.scheme->background;
    result.assumed_background = true;
  }
  NamedTensors ours;
  std::set<std::string> seen;
  for (const auto& [stored_as, name, value] : file.tensors) {
    if (!seen.insert(name).second) throw Error(in.string() + ": has '" + name + "' twice");
    ours.emplace_back(name, value);
    if (const auto why = not_finite(value))
      insistence.object<Error>(fmt::format("{}: '{}': {}: the training that wrote it had diverged",
                                           in.string(), stored_as.empty() ? name : stored_as,
                                           *why));
    const auto head = head_of(name);
    if (!head || !classes || value.dim() == 0) continue;
    const auto from = classes->axis(value.size(0), head->values);
    if (!from) continue;
    if (const auto rows = with_classes(value, *from, head->axis(scheme), classes->count))
      ours.back().second = *rows;
  }
  result.lost_card = card && !takes_metadata(out);
  write_weights(out, in_names_of(scheme, ours, result.unnamed),
                card ? to_metadata(*card) : Metadata());
  return result;
}

}  // namespace millrace
