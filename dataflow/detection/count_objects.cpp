#include "millrace/dataflow/detection/count_objects.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <variant>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

constexpr float kSmall = 32 * 32, kLarge = 96 * 96;  // pixels; medium areas are between
constexpr std::size_t kMostClasses = 120;            // maximum for which all are shown
constexpr std::size_t kLine = 96;                    // characters

struct Counts : ObjectCounts {
  std::vector<std::int64_t> classes;
  std::array<std::int64_t, 3> sizes{};  // small, medium, large
  std::int64_t crowds = 0;

  void add(const Sample& sample) {
    const auto& of = sample.objects;
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (of.crowd[i]) {
        ++crowds;
        continue;
      }
      ++objects;
      const auto area = of.boxes[i].area();
      ++sizes[area < kSmall ? 0 : area <= kLarge ? 1 : 2];
      const auto label = static_cast<std::size_t>(of.classes[i]);
      if (label < classes.size()) ++classes[label];
      if (std::holds_alternative<std::monostate>(of.segmentations[i]) && ++without_shape == 1)
        first_without_shape = sample.path;
    }
  }
  void add(const Counts& later) {
    objects += later.objects;
    if (without_shape == 0) first_without_shape = later.first_without_shape;
    without_shape += later.without_shape;
    std::ranges::transform(classes, later.classes, classes.begin(), std::plus<>());
    std::ranges::transform(sizes, later.sizes, sizes.begin(), std::plus<>());
    crowds += later.crowds;
  }
};

/// Counts the described samples of the source, and the objects of the first `classes` classes.
Counts counts_of(const Source<Sample>& source, std::size_t classes) {
  using Range = tbb::blocked_range<std::int64_t>;
  Counts none;
  none.classes.resize(classes);
  auto counts = tbb::parallel_reduce(
      Range(0, source.size()), none,
      [&](const Range& range, Counts part) {
        for (auto i = range.begin(); i < range.end(); ++i) try {
            part.add(source.about(i));
          } catch (const DataError&) {  // the flow reports it according to data.on_error
          }
        return part;
      },
      [](Counts a, const Counts& b) {
        a.add(b);
        return a;
      });
  counts.samples = source.size();
  return counts;
}

/// Formats names with their counts in columns.
std::string table(const std::vector<std::pair<std::string, std::int64_t>>& entries) {
  std::size_t name = 0, number = 0;
  for (const auto& [label, objects] : entries) {
    name = std::max(name, label.size());
    number = std::max(number, std::to_string(objects).size());
  }
  const auto columns = std::max<std::size_t>(1, kLine / (name + number + 4));
  const auto rows = (entries.size() + columns - 1) / columns;
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    text += '\n';
    for (auto i = row; i < entries.size(); i += rows)  // in column order
      text += fmt::format("  {:<{}} {:>{}} ", entries[i].first, name, entries[i].second, number);
    text.pop_back();
  }
  return text;
}

std::string classes_text(const Counts& counts, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::int64_t>> entries;
  for (std::size_t k = 0; k < names.size(); ++k) entries.emplace_back(names[k], counts.classes[k]);
  std::string heading = "objects per class:";
  if (entries.size() > kMostClasses) {
    heading = fmt::format("objects of the {0} most frequent and the {0} rarest of {1} classes:",
                          kMostClasses / 2, entries.size());
    std::ranges::stable_sort(entries, std::greater<>(),
                             &std::pair<std::string, std::int64_t>::second);
    entries.erase(entries.begin() + kMostClasses / 2, entries.end() - kMostClasses / 2);
  }
  return heading + table(entries);
}

}  // namespace

ObjectCounts count_objects(const Source<Sample>& source) { return counts_of(source, 0); }

std::string data_summary(const Source<Sample>& source, const std::vector<std::string>& classes) {
  const auto counts = counts_of(source, classes.size());
  const auto objects = counts.objects;
  auto text = fmt::format("training data: {}, {}", counted(source.size(), "image"),
                          counted(objects, "object"));
  if (objects > 0)
    text += fmt::format(" ({:.1f} per image)",
                        static_cast<double>(objects) / static_cast<double>(source.size()));
  if (counts.crowds > 0) text += ", " + counted(counts.crowds, "crowd");
  if (objects == 0) return text;
  const auto share = [&](std::size_t size) {
    return 100 * static_cast<double>(counts.sizes[size]) / static_cast<double>(objects);
  };
  text += fmt::format(
      "; {:.1f} % small (boxes under 32 x 32 pixels), {:.1f} % medium, {:.1f} % large (over 96 x "
      "96)\n",
      share(0), share(1), share(2));
  return text + classes_text(counts, classes);
}

}  // namespace millrace
