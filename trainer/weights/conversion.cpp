#include "trainer/weights/conversion.h"

#include <set>

#include "base/errors.h"
#include "trainer/weights/class_rows.h"
#include "trainer/weights/formats.h"

namespace millrace {
namespace {

/// The order of classes that a scheme has in a head's tensor of `values` rows a class.
ClassAxis axis_of(const Scheme& scheme, std::string_view name, std::int64_t values) {
  const bool mask = name.find(".mask_") != name.npos;
  const bool scores = name.find(".cls_score") != name.npos;
  const bool has_background =
      scores || (mask ? scheme.background_has_mask : scheme.background == Background::first);
  return {values, has_background ? scheme.background : Background::none};
}

}  // namespace

Conversion convert_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                           const Scheme& scheme) {
  check_writable_format(out);
  const auto file = in_our_names(read_weights(in));
  auto classes = classes_of(file);
  if (classes && classes->background == Background::none)
    classes->background = file.scheme->background;  // the shapes leave it open
  Conversion result{.from = std::string(file.scheme->name),
                    .tensors = file.tensors.size(),
                    .classes = classes ? classes->count : 0};
  NamedTensors ours;
  std::set<std::string> seen;
  for (const auto& [stored_as, name, value] : file.tensors) {
    if (!seen.insert(name).second) throw Error(in.string() + ": has '" + name + "' twice");
    ours.emplace_back(name, value);
    const auto values = values_per_class(name);
    const auto from = values > 0 && classes && value.dim() > 0
                          ? classes->axis(value.size(0), values)
                          : std::nullopt;
    if (!from) continue;
    const auto to = axis_of(scheme, name, values);
    if (const auto rows = with_classes(value, *from, to, classes->count))
      ours.back().second = *rows;
  }
  write_weights(out, in_names_of(scheme, ours, result.unnamed));
  return result;
}

}  // namespace millrace
