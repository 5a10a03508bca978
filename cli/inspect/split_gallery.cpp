#include "millrace/cli/inspect/split_gallery.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/decode.h"

namespace millrace::cli {
namespace {

constexpr int kPhotoThumbnail = 320;             // longer side, pixels
constexpr std::size_t kThumbnailBytes = 18'000;  // per thumbnail
constexpr double kNone = -std::numeric_limits<double>::infinity();

/// Extreme values of an image's objects; sizes are -1 if it has no object.
struct ImageExtremes {
  double objects = 0, smallest = -1, largest = -1, longest = -1, crowds = 0, unreached = 0;
};

ImageExtremes extremes_of(const SeenData& data, const SeenImage& image,
                          const std::vector<ObjectCoverage>& coverage) {
  ImageExtremes one;
  for (std::size_t k = image.first; k < image.first + image.count; ++k) {
    const auto& object = data.objects[k];
    if (object.crowd) {
      ++one.crowds;
      continue;
    }
    ++one.objects;
    const double size = object.size();
    one.smallest = one.smallest < 0 ? size : std::min(one.smallest, size);
    one.largest = std::max(one.largest, size);
    one.longest = std::max(one.longest, object.long_side() / std::max(1., object.short_side()));
    if (!coverage.empty() && coverage[k].match == MatchKind::nothing) ++one.unreached;
  }
  return one;
}

/// Chooses images by position, with the reasons for each.
class Choice {
 public:
  Choice(const SeenData& data, const std::vector<ObjectCoverage>& coverage, std::size_t most)
      : data_(data), most_(most) {
    for (const auto& image : data.images) extremes_.push_back(extremes_of(data, image, coverage));
  }

  std::vector<ChosenImage> make() {
    const auto share = [&](std::size_t parts) { return std::max<std::size_t>(1, most_ / parts); };
    const auto if_any = [](double value) { return value > 0 ? value : kNone; };
    highest("many objects", share(12), [&](const auto& one) { return if_any(one.objects); });
    highest("small objects", share(12),
            [](const auto& one) { return one.smallest < 0 ? kNone : -one.smallest; });
    highest("large objects", share(16), [&](const auto& one) { return if_any(one.largest); });
    highest("long objects", share(16), [&](const auto& one) { return if_any(one.longest); });
    highest("beyond all anchors", share(12),
            [&](const auto& one) { return if_any(one.unreached); });
    highest("with a crowd", share(24), [&](const auto& one) { return if_any(one.crowds); });
    highest("without an object", share(24),
            [](const auto& one) { return one.objects > 0 ? kNone : 0; });
    rare_classes(share(3));
    evenly();
    std::vector<ChosenImage> chosen;
    for (auto& [image, tags] : tags_) chosen.push_back({image, std::move(tags)});
    return chosen;
  }

 private:
  void add(std::size_t image, const std::string& tag) {
    if (tags_.size() >= most_ && !tags_.contains(image)) return;
    auto& tags = tags_[image];
    if (!std::ranges::count(tags, tag)) tags.push_back(tag);
  }

  /// Adds the `count` images with the highest values; images whose value is kNone are skipped.
  template <class Value>
  void highest(const std::string& tag, std::size_t count, Value value) {
    std::vector<std::pair<double, std::size_t>> order;  // negated values, ascending
    for (std::size_t i = 0; i < extremes_.size(); ++i)
      if (const double own = value(extremes_[i]); own > kNone) order.emplace_back(-own, i);
    count = std::min(count, order.size());
    std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t k = 0; k < count; ++k) add(order[k].second, tag);
  }

  /// Adds an image of each class, up to `count` classes, the rarest first.
  void rare_classes(std::size_t count) {
    const auto counts = class_counts(data_);
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < counts.size(); ++k)
      if (counts[k].objects > 0) order.push_back(k);
    std::ranges::stable_sort(order, {}, [&](std::size_t k) { return counts[k].objects; });
    if (order.size() > count) order.resize(count);
    std::map<std::int32_t, std::size_t> wanted;  // the first image of each class
    for (const auto k : order) wanted.emplace(static_cast<std::int32_t>(k), data_.images.size());
    for (std::size_t i = 0; i < data_.images.size(); ++i)
      for (const auto& object : data_.objects_of(data_.images[i]))
        if (const auto found = wanted.find(object.label); found != wanted.end() && !object.crowd)
          found->second = std::min(found->second, i);
    for (const auto k : order) add(wanted.at(static_cast<std::int32_t>(k)), "first of its class");
  }

  /// Adds evenly spaced images that are not yet chosen until there are `most`.
  void evenly() {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < data_.images.size(); ++i)
      if (!tags_.contains(i)) others.push_back(i);
    const auto room = std::min(most_ - std::min(most_, tags_.size()), others.size());
    for (std::size_t k = 0; k < room; ++k) add(others[k * others.size() / room], "any");
  }

  const SeenData& data_;
  const std::size_t most_;
  std::vector<ImageExtremes> extremes_;
  std::map<std::size_t, std::vector<std::string>> tags_;
};

report::Picture picture_of(const Source<Sample>& source, const SeenData& data,
                           const std::vector<ObjectCoverage>& coverage, const ChosenImage& chosen,
                           std::int64_t max_pixels) {
  const auto& image = data.images[chosen.image];
  report::Picture picture{.title = fmt::format("image {}", image.image_id),
                          .width = image.original.width,
                          .height = image.original.height,
                          .tags = chosen.tags};
  try {
    auto sample = source[image.sample];
    if (!sample.path.empty())
      picture.title = std::filesystem::path(sample.path).filename().string();
    picture.shapes =
        shapes_of(sample.objects, report::outline_tolerance(image.original, kPhotoThumbnail));
    const Decode decode{.strict = false, .max_pixels = max_pixels, .short_side = kPhotoThumbnail};
    const auto decoded = decode(std::move(sample));
    const auto pixels =
        decoded.image.is_mirrored() ? decoded.image.pixels() : decoded.image.stored_pixels();
    picture.jpeg = report::thumbnail(pixels, kThumbnailBytes, kPhotoThumbnail);
  } catch (const DataError& problem) {
    picture.caption = sentence_of(problem.what());
    picture.tags.emplace_back("cannot be read");
  }
  for (std::size_t k = 0; !coverage.empty() && k < image.count; ++k)
    if (!data.objects[image.first + k].crowd && picture.shapes.size() == image.count &&
        coverage[image.first + k].match == MatchKind::nothing)
      picture.shapes[k].note = "no anchor";
  const auto known = extremes_of(data, image, coverage);
  picture.metrics = {{"objects", known.objects}};
  if (known.objects > 0) {
    picture.metrics.emplace_back("smallest px", known.smallest);
    picture.metrics.emplace_back("largest px", known.largest);
  }
  if (!coverage.empty()) picture.metrics.emplace_back("beyond anchors", known.unreached);
  return picture;
}

}  // namespace

std::vector<report::Shape> shapes_of(const Instances& objects, double tolerance) {
  std::vector<report::Shape> shapes;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& box = objects.boxes[i];
    const bool crowd = objects.crowd[i] != 0;
    shapes.push_back({.category = objects.classes[i],
                      .box = {box.x1, box.y1, box.width(), box.height()},
                      .outline = report::outline_of(objects.segmentations[i], tolerance),
                      .kind = report::Shape::annotated,
                      .crowd = crowd,
                      .note = crowd ? "crowd" : ""});
  }
  return shapes;
}

std::vector<ChosenImage> choose_images(const SeenData& data,
                                       const std::vector<ObjectCoverage>& coverage,
                                       std::size_t most) {
  if (data.images.empty()) return {};
  return Choice(data, coverage, most).make();
}

report::Gallery split_gallery(const Source<Sample>& source, const SeenData& data,
                              const std::vector<ObjectCoverage>& coverage,
                              const std::vector<ChosenImage>& chosen, std::int64_t max_pixels) {
  report::Gallery gallery{.categories = data.classes};
  gallery.pictures.resize(chosen.size());
  tbb::parallel_for(std::size_t{0}, chosen.size(), [&](std::size_t k) {
    gallery.pictures[k] = picture_of(source, data, coverage, chosen[k], max_pixels);
  });
  return gallery;
}

}  // namespace millrace::cli
