#include "millrace/coco/data/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/text.h"

namespace millrace::coco {

std::string FindingExample::text() const {
  std::vector<std::string> places;
  if (annotation) places.push_back(fmt::format("annotation {}", *annotation));
  if (image) places.push_back(fmt::format("image {}", *image));
  if (category) places.push_back(fmt::format("category {}", *category));
  std::string where = joined(places);
  if (!file.empty()) where += where.empty() ? file : fmt::format(" ({})", file);
  if (where.empty() || what.empty()) return where + what;
  return where + ": " + what;
}

void Findings::add(const FindingKind& kind, FindingExample example) {
  Finding& finding = by_name_.try_emplace(kind.name, Finding{kind, 0, {}}).first->second;
  ++finding.count;
  if (finding.examples.size() < max_examples_) finding.examples.push_back(std::move(example));
}

void Findings::append(const Findings& others) {
  for (const auto& [name, more] : others.by_name_) {
    Finding& finding = by_name_.try_emplace(name, Finding{more.kind, 0, {}}).first->second;
    finding.count += more.count;
    const auto room = std::min(max_examples_ - finding.examples.size(), more.examples.size());
    finding.examples.insert(finding.examples.end(), more.examples.begin(),
                            more.examples.begin() + static_cast<std::ptrdiff_t>(room));
  }
}

std::vector<Finding> Findings::sorted() const {
  std::vector<Finding> all;
  for (const auto& [name, finding] : by_name_) all.push_back(finding);
  std::ranges::stable_sort(all, {}, [](const Finding& one) { return one.kind.severity; });
  return all;
}

}  // namespace millrace::coco
