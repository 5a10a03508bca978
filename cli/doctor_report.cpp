#include "millrace/cli/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "millrace/base/text.h"
#include "millrace/cli/findings_text.h"
#include "millrace/tools/data/object_statistics.h"

namespace millrace::cli {
namespace {

using coco::Severity;

std::string sizes_text(const SizeCounts& sizes) {
  const auto all = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (all == 0) return "";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    parts.push_back(fmt::format("{:.1f} % {}",
                                100. * static_cast<double>(sizes[i]) / static_cast<double>(all),
                                size_names()[i]));
  return fmt::format("  object sizes in pixels after resizing: {}\n", joined(parts));
}

std::string facts_text(const SplitFacts& facts) {
  auto text = fmt::format("{}: {}", facts.name, counted(facts.images, "image"));
  if (facts.objects > 0 && facts.images > 0)
    text += fmt::format(", {} ({:.1f} per image)", counted(facts.objects, "object"),
                        static_cast<double>(facts.objects) / static_cast<double>(facts.images));
  if (facts.crowds > 0) text += fmt::format(", {}", counted(facts.crowds, "crowd"));
  return fmt::format("{}; {}\n", text, facts.source) +
         (facts.sizes ? sizes_text(*facts.sizes) : "");
}

std::string table_text(const DoctorReport& report) {
  if (report.table.empty()) return "";
  std::size_t width = 5;
  for (const auto& name : report.classes) width = std::max(width, name.size());
  auto text = fmt::format("\n{:{}}", "class", width);
  for (const auto& split : report.table_splits)
    text += fmt::format("  {:>20}  {:>8}", split + ": objects", "images");
  text += '\n';
  for (std::size_t k = 0; k < report.table.size(); ++k) {
    text += fmt::format("{:{}}", report.classes[k], width);
    for (const auto& count : report.table[k])
      text += fmt::format("  {:>20}  {:>8}", count.objects, count.images);
    text += '\n';
  }
  return text;
}

std::string ceiling_text(const DoctorReport::Ceiling& ceiling) {
  const auto& [split, rule, found] = ceiling;
  if (found.boxes < 0) return "";
  auto text = fmt::format(
      "scores of perfect predictions on {}:\n  true boxes{}, {} per image: box AP {:.3f}", split,
      rule.nms ? fmt::format(" after NMS {:g}", *rule.nms) : "", rule.detections_per_image,
      found.boxes);
  if (found.suppressed + found.beyond_limit > 0)
    text += fmt::format("; NMS removes {1} and the limit {2} of {0}",
                        counted(found.objects, "object"), found.suppressed, found.beyond_limit);
  text += '\n';
  if (found.reached)
    text += found.unreached == 0
                ? "  objects without a matching anchor: none\n"
                : fmt::format("  {} without a matching anchor: {:+.3f}\n",
                              counted(found.unreached, "object"), *found.reached - found.boxes);
  if (found.masks)
    text += fmt::format("  true shapes as {0} x {0} masks: mask AP {1:.3f}\n", rule.masks->cells,
                        *found.masks);
  return text + '\n';
}

Json ceiling_json(const DoctorReport::Ceiling& ceiling) {
  const auto& [split, rule, found] = ceiling;
  Json json = {{"split", split},
               {"objects", found.objects},
               {"boxes",
                {{"ap", found.boxes},
                 {"nms", rule.nms ? Json(*rule.nms) : Json()},
                 {"detections_per_img", rule.detections_per_image},
                 {"suppressed", found.suppressed},
                 {"beyond_limit", found.beyond_limit}}}};
  if (found.reached) json["anchors"] = {{"ap", *found.reached}, {"unreached", found.unreached}};
  if (found.masks) json["masks"] = {{"ap", *found.masks}, {"cells", rule.masks->cells}};
  return json;
}

std::string verdict(const DoctorReport& report) {
  const auto errors = report.kinds(Severity::error);
  const auto rest = fmt::format("{}, {}", counted(report.kinds(Severity::warning), "warning"),
                                counted(report.kinds(Severity::note), "note"));
  return errors > 0 ? fmt::format("training would be wrong: {}, {}", counted(errors, "error"), rest)
                    : fmt::format("ready to train: no errors, {}", rest);
}

}  // namespace

void DoctorReport::add(const std::string& where, const coco::Findings& found) {
  for (auto& finding : found.sorted()) {
    finding.where = where;
    findings.push_back(std::move(finding));
  }
  std::ranges::stable_sort(findings, {}, [](const coco::Finding& one) {
    return std::pair(one.kind.severity, one.kind.name);
  });
}

std::size_t DoctorReport::kinds(Severity severity) const {
  return static_cast<std::size_t>(std::ranges::count(
      findings, severity, [](const coco::Finding& one) { return one.kind.severity; }));
}

std::string to_text(const DoctorReport& report) {
  std::string text;
  for (const auto& facts : report.splits) text += facts_text(facts);
  text += fmt::format("{} to detect\n", counted(report.classes.size(), "class", "classes"));
  text += findings_text(report.findings) + table_text(report) + '\n';
  if (report.ceiling) text += ceiling_text(*report.ceiling);
  for (const auto& what : report.unexamined) text += fmt::format("not examined: {}\n", what);
  return text + verdict(report) + '\n';
}

Json to_json(const DoctorReport& report) {
  Json splits = Json::array(), classes = Json::array();
  for (const auto& facts : report.splits) {
    Json one = {{"name", facts.name},
                {"source", facts.source},
                {"images", facts.images},
                {"objects", facts.objects},
                {"crowds", facts.crowds}};
    if (facts.sizes) one["sizes"] = *facts.sizes;
    splits.push_back(std::move(one));
  }
  for (std::size_t k = 0; k < report.table.size(); ++k) {
    Json one = {{"name", report.classes[k]}};
    for (std::size_t s = 0; s < report.table_splits.size(); ++s)
      one[report.table_splits[s]] = {{"objects", report.table[k][s].objects},
                                     {"images", report.table[k][s].images}};
    classes.push_back(std::move(one));
  }
  Json json = {{"splits", std::move(splits)},
               {"findings", findings_json(report.findings)},
               {"classes", std::move(classes)},
               {"unexamined", report.unexamined},
               {"errors", report.kinds(Severity::error)},
               {"warnings", report.kinds(Severity::warning)},
               {"notes", report.kinds(Severity::note)}};
  if (report.ceiling) json["ceiling"] = ceiling_json(*report.ceiling);
  return json;
}

}  // namespace millrace::cli
