#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "millrace/tools/data/checks.h"

namespace millrace {
namespace {

constexpr coco::FindingKind kAlike{
    "class-names-alike", coco::Severity::warning,
    "classes whose name is similar to that of a class with many more objects",
    "if this is a typing error, its objects are learned and scored as a separate class"};

constexpr double kRare = 0.05;         // maximum fraction of the other class's objects
constexpr std::uint64_t kSeveral = 5;  // number beside which a single object is rare
constexpr std::size_t kShortest = 4;   // minimum length of names compared with one letter's
                                       // difference

/// Returns a name in lower case without spaces and punctuation.
std::string bare(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (const auto letter = static_cast<unsigned char>(c);
        std::isalnum(letter) != 0 || letter > 127)
      letters += static_cast<char>(std::tolower(letter));
  return letters;
}

/// Returns true if the names differ by one inserted, deleted, replaced or transposed letter.
bool are_one_slip_apart(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  const auto begin = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  a.remove_prefix(begin), b.remove_prefix(begin);
  if (a.size() < b.size()) return a == b.substr(1);
  if (a.empty() || a.substr(1) == b.substr(1)) return true;
  return a.size() >= 2 && a[0] == b[1] && a[1] == b[0] && a.substr(2) == b.substr(2);
}

bool is_rare(std::uint64_t objects, std::uint64_t others) {
  return static_cast<double>(objects) <= kRare * static_cast<double>(others) ||
         (objects == 1 && others >= kSeveral);
}

}  // namespace

void check_class_names(std::span<const std::string> names, std::span<const std::uint64_t> objects,
                       coco::Findings& findings) {
  for (std::size_t k = 0; k < names.size(); ++k) {
    const auto name = bare(names[k]);
    if (objects[k] == 0 || name.empty()) continue;
    for (std::size_t other = 0; other < names.size(); ++other) {
      if (other == k || objects[k] > objects[other]) continue;
      const auto longer = bare(names[other]);
      const bool same = name == longer && (objects[k] < objects[other] || k > other);
      const bool slip = is_rare(objects[k], objects[other]) && name.size() >= kShortest &&
                        are_one_slip_apart(name, longer);
      if (!same && !slip) continue;
      findings.add(kAlike,
                   {.what = fmt::format("'{}' (objects: {}) and '{}' (objects: {})", names[k],
                                        objects[k], names[other], objects[other])});
      break;
    }
  }
}

}  // namespace millrace
