#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "millrace/base/text.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/tools/data/checks.h"

namespace millrace {
namespace {

using coco::FindingKind;
using enum coco::Severity;

constexpr FindingKind kUnknown{"class-unknown", error, "classes without a category in a split",
                               "training stops before its first step"};
constexpr FindingKind kNamedTwice{"category-name-twice", error,
                                  "categories with the same name as another",
                                  "classes are identified by name: training stops before its first "
                                  "step unless data.classes omits both"};
constexpr FindingKind kNothingToLearn{
    "class-unlearned", warning, "classes without training objects",
    "they are never detected; all their evaluation objects are missed"};
constexpr FindingKind kNothingToScore{"class-unscored", note, "classes without evaluation objects",
                                      "mean scores exclude them"};
constexpr FindingKind kOnlyScored{"category-only-in-evaluation", warning,
                                  "evaluation categories that are not trained",
                                  "scores exclude their objects"};
constexpr FindingKind kOtherId{
    "category-id-differs", note, "categories with different ids in the splits",
    "no effect: classes are identified by name; results contain the ids of the evaluated split"};
constexpr FindingKind kGaps{"category-id-gaps", note, "splits whose category ids are not 1 to N",
                            "no effect: class k is the k-th category; results contain the ids of "
                            "the file. Tools that use ids as class numbers fail"};
constexpr FindingKind kImbalance{
    "class-imbalance", note,
    "splits whose most frequent class has more than a hundred times the objects of the rarest",
    "rare classes are learned late or not at all; consider the source repeat_factor"};
constexpr FindingKind kTiny{"object-tiny", note, "objects smaller than 16 pixels after the resize",
                            "little of them remains after the first layers of a network; use "
                            "larger images (data.short_side)"};

constexpr FindingKind kAlike{
    "class-names-alike", warning,
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

std::string text(const DataSplit& split, coco::TextRef name) {
  return std::string(split.annotations->text(name));
}

/// Reports categories of an evaluation split that the training split does not have.
void compare_categories(const NamedSplit& train, const NamedSplit& other,
                        coco::Findings& findings) {
  const auto& known = train.data.annotations->categories;
  for (const auto& category : other.data.annotations->categories) {
    const auto name = text(other.data, category.name);
    const auto same = std::ranges::find(
        known, name, [&](const coco::Category& one) { return text(train.data, one.name); });
    if (same == known.end())
      findings.add(kOnlyScored,
                   {.category = category.id, .what = fmt::format("'{}' of {}", name, other.name)});
    else if (same->id != category.id)
      findings.add(kOtherId, {.category = category.id,
                              .what = fmt::format("'{}' of {} is category {} in {}", name,
                                                  other.name, same->id, train.name)});
  }
}

}  // namespace

ClassTable count_classes(std::span<const NamedSplit> splits) {
  ClassTable table;
  if (!splits.empty()) table.resize(splits[0].data.classes.size());
  for (auto& row : table) row.resize(splits.size());
  for (std::size_t s = 0; s < splits.size(); ++s) {
    const auto& data = *splits[s].data.annotations;
    const auto& ids = splits[s].data.category_ids;
    std::map<std::int64_t, std::size_t> class_of;
    for (std::size_t k = 0; k < ids.size(); ++k) class_of.try_emplace(ids[k], k);
    std::vector<const coco::Image*> last(table.size());  // last image with the class
    for (const auto& image : data.images)
      for (const auto& object : data.objects(image)) {
        const auto found = class_of.find(object.category_id);
        if (object.crowd || found == class_of.end()) continue;
        auto& count = table[found->second][s];
        ++count.objects;
        if (std::exchange(last[found->second], &image) != &image) ++count.images;
      }
  }
  return table;
}

void check_categories(const NamedSplit& split, coco::Findings& findings) {
  const auto& categories = split.data.annotations->categories;
  std::map<std::string, std::int64_t> named;  // names and their first id
  for (const auto& category : categories) {
    const auto name = text(split.data, category.name);
    const auto [first, is_new] = named.try_emplace(name, category.id);
    if (!is_new)
      findings.add(kNamedTwice,
                   {.category = category.id,
                    .what = fmt::format("'{}' is also category {}", name, first->second)});
  }
  std::vector<std::string> known;
  for (const auto& [name, id] : named) known.push_back(name);
  for (std::size_t k = 0; k < split.data.classes.size(); ++k) {
    if (split.data.category_ids[k] != kNoCategory) continue;
    const auto& name = split.data.classes[k];
    findings.add(kUnknown, {.what = fmt::format("'{}'{}", name, suggestion(name, known))});
  }
  const auto count = std::ssize(categories);
  if (count > 0 && (categories.front().id != 1 || categories.back().id != count))
    findings.add(kGaps, {.what = fmt::format("{} categories, ids from {} to {}", count,
                                             categories.front().id, categories.back().id)});
}

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

void check_classes(std::span<const NamedSplit> splits, const ClassTable& table,
                   coco::Findings& findings) {
  if (splits.empty()) return;
  for (const auto& other : splits.subspan(1)) compare_categories(splits[0], other, findings);
  const auto& classes = splits[0].data.classes;
  const auto evaluated = [&](std::size_t k) {
    std::uint64_t objects = 0;
    for (std::size_t s = 1; s < splits.size(); ++s) objects += table[k][s].objects;
    return objects;
  };
  std::vector<std::uint64_t> trained;
  for (const auto& row : table) trained.push_back(row[0].objects);
  check_class_names(classes, trained, findings);
  for (const bool missed : {true, false})  // classes that lower the score come first
    for (std::size_t k = 0; k < classes.size(); ++k)
      if (table[k][0].objects == 0 && (evaluated(k) > 0) == missed)
        findings.add(kNothingToLearn, {.what = fmt::format("'{}' (evaluation objects: {})",
                                                           classes[k], evaluated(k))});
  for (std::size_t s = 1; s < splits.size(); ++s)
    for (std::size_t k = 0; k < classes.size(); ++k)
      if (table[k][s].objects == 0) findings.add(kNothingToScore, {.what = classes[k]});
  std::vector<std::size_t> learned;  // classes with a training object
  for (std::size_t k = 0; k < trained.size(); ++k)
    if (trained[k] > 0) learned.push_back(k);
  if (learned.empty()) return;
  const auto objects = [&](std::size_t k) { return trained[k]; };
  const auto most = *std::ranges::max_element(learned, {}, objects),
             least = *std::ranges::min_element(learned, {}, objects);
  if (trained[most] > 100 * trained[least])
    findings.add(kImbalance, {.what = fmt::format("{}: {} objects of '{}', {} of '{}'",
                                                  splits[0].name, trained[most], classes[most],
                                                  trained[least], classes[least])});
}

SizeCounts check_sizes(const DataSplit& split, std::int64_t short_side, std::int64_t max_side,
                       coco::Findings& findings) {
  const auto& data = *split.annotations;
  SizeCounts counts{};
  for (const auto& image : data.images) {
    const cv::Size size(image.width, image.height);
    const double scale =
        static_cast<double>(shortest_edge_size(size, short_side, max_side).width) / size.width;
    for (const auto& object : data.objects(image)) {
      const auto box = coco::clipped_box(object, image);
      if (object.crowd || !box.has_area() ||
          std::ranges::count(split.category_ids, object.category_id) == 0)
        continue;
      const double pixels = scale * std::sqrt(double{box.width()} * double{box.height()});
      const auto kind = std::ranges::upper_bound(kSizeBounds, pixels) - kSizeBounds.begin();
      ++counts[static_cast<std::size_t>(kind)];
      if (kind == 0)
        findings.add(kTiny, {.annotation = object.id,
                             .image = image.id,
                             .file = std::string(data.text(image.file_name)),
                             .what = fmt::format("{:.3g} pixels", pixels)});
    }
  }
  return counts;
}

}  // namespace millrace
