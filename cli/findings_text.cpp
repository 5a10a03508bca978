#include "millrace/cli/findings_text.h"

#include <fmt/format.h>

#include <utility>

namespace millrace::cli {

std::string_view severity_name(coco::Severity severity) {
  constexpr std::string_view kNames[] = {"error", "warning", "note"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::string findings_text(std::span<const coco::Finding> findings) {
  std::string text;
  for (const auto& [kind, count, examples, where] : findings) {
    text += fmt::format("\n{:7}  {}, {}{}{}: {}\n    {}\n", severity_name(kind.severity), kind.name,
                        count, where.empty() ? "" : " in ", where, kind.what, kind.effect);
    for (const auto& example : examples) text += fmt::format("    - {}\n", example.text());
    if (count > examples.size())
      text += fmt::format("    - and {} more\n", count - examples.size());
  }
  return text;
}

Json findings_json(std::span<const coco::Finding> findings) {
  Json all = Json::array();
  for (const auto& [kind, count, places, where] : findings) {
    Json examples = Json::array();
    for (const auto& example : places) {
      Json& one = examples.emplace_back(Json::object());
      if (example.annotation) one["annotation"] = *example.annotation;
      if (example.image) one["image"] = *example.image;
      if (example.category) one["category"] = *example.category;
      if (!example.file.empty()) one["file"] = example.file;
      if (!example.what.empty()) one["what"] = example.what;
    }
    Json& json =
        all.emplace_back(Json{{"name", kind.name}, {"severity", severity_name(kind.severity)}});
    if (!where.empty()) json["where"] = where;
    json["count"] = count;
    json["what"] = kind.what;
    json["effect"] = kind.effect;
    json["examples"] = std::move(examples);
  }
  return all;
}

}  // namespace millrace::cli
