#include "millrace/tools/data/object_statistics.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

/// Appends the images and objects of `part`.
void append(SeenData& data, const SeenData& part) {
  const auto first = static_cast<std::uint32_t>(data.objects.size());
  for (auto image : part.images) {
    image.first += first;
    data.images.push_back(image);
  }
  data.objects.insert(data.objects.end(), part.objects.begin(), part.objects.end());
  data.without_size += part.without_size;
  data.unreadable += part.unreadable;
}

}  // namespace

double SeenObject::size() const { return std::sqrt(double{box.width()} * double{box.height()}); }

void add_image(SeenData& data, SeenImage image, const Instances& objects, float x, float y) {
  image.first = static_cast<std::uint32_t>(data.objects.size());
  image.count = static_cast<std::uint32_t>(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& box = objects.boxes[i];
    data.objects.push_back({.box = {box.x1 * x, box.y1 * y, box.x2 * x, box.y2 * y},
                            .label = objects.classes[i],
                            .crowd = objects.crowd[i] != 0});
  }
  data.images.push_back(image);
}

SeenData seen_data(const Source<Sample>& source, std::vector<std::string> classes,
                   const ResizeRule& resize) {
  constexpr std::int64_t kPart = 1024;  // samples per part, independent of the number of threads
  std::vector<SeenData> parts(static_cast<std::size_t>((source.size() + kPart - 1) / kPart));
  tbb::parallel_for(std::size_t{0}, parts.size(), [&](std::size_t p) {
    auto& part = parts[p];
    const auto begin = static_cast<std::int64_t>(p) * kPart;
    for (auto i = begin; i < std::min(begin + kPart, source.size()); ++i) try {
        const auto sample = source.about(i);
        if (sample.width <= 0 || sample.height <= 0) {
          ++part.without_size;
          continue;
        }
        const cv::Size original(sample.width, sample.height),
            seen = resize ? resize(original) : original;
        add_image(
            part, {.image_id = sample.image_id, .sample = i, .original = original, .seen = seen},
            sample.objects, static_cast<float>(seen.width) / static_cast<float>(original.width),
            static_cast<float>(seen.height) / static_cast<float>(original.height));
      } catch (const DataError&) {  // reported by the flow, according to data.on_error
        ++part.unreadable;
      }
  });
  SeenData all{.classes = std::move(classes)};
  for (auto& part : parts) append(all, std::exchange(part, {}));
  return all;
}

SeenData thinned(const SeenData& data, std::size_t most) {
  if (data.images.size() <= most) return data;
  SeenData result{.classes = data.classes};
  for (std::size_t k = 0; k < most; ++k) {
    auto image = data.images[k * data.images.size() / most];
    const auto own = data.objects_of(image);
    image.first = static_cast<std::uint32_t>(result.objects.size());
    result.objects.insert(result.objects.end(), own.begin(), own.end());
    result.images.push_back(image);
  }
  return result;
}

std::vector<double> values(const SeenData& data, double (SeenObject::*of)() const) {
  std::vector<double> result;
  for (const auto& object : data.objects)
    if (!object.crowd) result.push_back((object.*of)());
  return result;
}

std::vector<double> objects_per_image(const SeenData& data) {
  std::vector<double> result;
  for (const auto& image : data.images)
    result.push_back(
        static_cast<double>(std::ranges::count(data.objects_of(image), false, &SeenObject::crowd)));
  return result;
}

std::vector<ClassCount> class_counts(const SeenData& data) {
  std::vector<ClassCount> counts(data.classes.size());
  std::vector<const SeenImage*> last(counts.size());  // last image with the class
  for (const auto& image : data.images)
    for (const auto& object : data.objects_of(image)) {
      const auto k = static_cast<std::size_t>(object.label);
      if (object.crowd || k >= counts.size()) continue;
      ++counts[k].objects;
      if (std::exchange(last[k], &image) != &image) ++counts[k].images;
    }
  return counts;
}

std::size_t crowd_count(const SeenData& data) {
  return static_cast<std::size_t>(std::ranges::count(data.objects, true, &SeenObject::crowd));
}

std::size_t size_kind(double size) {
  return static_cast<std::size_t>(std::ranges::upper_bound(kSizeBounds, size) -
                                  kSizeBounds.begin());
}

std::vector<std::string> size_names() {
  std::vector<std::string> names = {fmt::format("under {:g}", kSizeBounds.front())};
  for (std::size_t k = 1; k < kSizeBounds.size(); ++k)
    names.push_back(fmt::format("{:g} to {:g}", kSizeBounds[k - 1], kSizeBounds[k]));
  names.push_back(fmt::format("{:g} and more", kSizeBounds.back()));
  return names;
}

Histogram histogram(std::span<const double> values, std::vector<double> edges) {
  if (std::ranges::adjacent_find(edges, std::greater_equal<>()) != edges.end())
    throw std::invalid_argument("histogram edges must be ascending");
  Histogram result{std::move(edges), {}};
  result.counts.resize(result.edges.size() + 1);
  for (const double value : values)
    ++result.counts[static_cast<std::size_t>(std::ranges::upper_bound(result.edges, value) -
                                             result.edges.begin())];
  return result;
}

double quantile(std::span<const double> values, double q) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  const auto rank = std::clamp(std::ceil(q * static_cast<double>(sorted.size())), 1.,
                               static_cast<double>(sorted.size()));
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::ranges::nth_element(sorted, at);
  return *at;
}

}  // namespace millrace
