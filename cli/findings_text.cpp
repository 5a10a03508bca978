#include "millrace/cli/findings_text.h"

#include <fmt/format.h>

#include <utility>

namespace millrace::cli {

std::string_view severity_name(coco::Severity severity) {
  constexpr std::string_view kNames[] = {"error", "warning", "note"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::string finding_text(const coco::Finding& finding, std::string_view where) {
  const auto& [kind, count, examples] = finding;
  auto text =
      fmt::format("\n{:7}  {}, {}{}{}: {}\n    {}\n", severity_name(kind.severity), kind.name,
                  count, where.empty() ? "" : " in ", where, kind.what, kind.effect);
  for (const auto& example : examples) text += fmt::format("    - {}\n", example.text());
  if (count > examples.size()) text += fmt::format("    - and {} more\n", count - examples.size());
  return text;
}

Json finding_json(const coco::Finding& finding, std::string_view where) {
  Json examples = Json::array();
  for (const auto& example : finding.examples) {
    Json one = Json::object();
    if (example.annotation) one["annotation"] = *example.annotation;
    if (example.image) one["image"] = *example.image;
    if (example.category) one["category"] = *example.category;
    if (!example.file.empty()) one["file"] = example.file;
    if (!example.what.empty()) one["what"] = example.what;
    examples.push_back(std::move(one));
  }
  Json json = {{"name", finding.kind.name}, {"severity", severity_name(finding.kind.severity)}};
  if (!where.empty()) json["where"] = where;
  json["count"] = finding.count;
  json["what"] = finding.kind.what;
  json["effect"] = finding.kind.effect;
  json["examples"] = std::move(examples);
  return json;
}

std::string findings_text(const coco::Findings& findings) {
  std::string text;
  for (const auto& finding : findings.sorted()) text += finding_text(finding, "");
  return text;
}

Json findings_json(const coco::Findings& findings) {
  Json json = Json::array();
  for (const auto& finding : findings.sorted()) json.push_back(finding_json(finding, ""));
  return json;
}

}  // namespace millrace::cli
