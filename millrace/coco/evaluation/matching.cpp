#include "millrace/coco/evaluation/matching.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "millrace/base/errors.h"

namespace millrace::coco {
namespace {

struct Range {
  double low, high;  // both ends belong to it
  bool has(double area) const { return !((area < low) | (area > high)); }
};
constexpr Range kAreaRanges[kAreas] = {
    {0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}};

double area_of(const Detections& all, std::uint32_t index, AreaFrom from) {
  const Detections::Record& one = all[index];
  if (from == AreaFrom::given) return one.area;
  if (from == AreaFrom::box && one.has_bbox) return one.bbox[2] * one.bbox[3];
  if (one.mask != Detections::kNoMask) return all.mask_of(one).extent.pixels;
  throw Error(fmt::format("detection {} (image {}) has no mask, and areas are taken from masks",
                          index, one.image_id));
}

/// Positions of categories; those of small numbers without a search.
class CategoryIndex {
 public:
  explicit CategoryIndex(const Dataset& truth) : truth_(truth) {
    for (std::size_t k = 0; k < truth.categories.size(); ++k) {
      const std::int64_t id = truth.categories[k].id;
      if (id < 0 || id >= kSmall) continue;
      if (small_.size() <= static_cast<std::size_t>(id))
        small_.resize(static_cast<std::size_t>(id) + 1, -1);
      small_[static_cast<std::size_t>(id)] = static_cast<int>(k);
    }
  }

  /// -1: none.
  int operator()(std::int64_t id) const {
    if (id < 0 || id >= kSmall) return truth_.category_index(id);
    return static_cast<std::size_t>(id) < small_.size() ? small_[static_cast<std::size_t>(id)] : -1;
  }

 private:
  static constexpr std::int64_t kSmall = 4096;
  const Dataset& truth_;
  std::vector<int> small_;
};

/// Matches detections image by image. Not thread-safe: it reuses its memory.
class ImageMatcher {
 public:
  /// Borrows both; the options are `checked`.
  ImageMatcher(const Dataset& truth, const EvaluateOptions& options)
      : truth_(truth), options_(options), category_of_(truth) {}

  std::uint32_t match(const Image& image, const Detections& all, Indices given,
                      std::vector<Scored>& out) {
    list(all, given);
    list(image);
    out.reserve(out.size() + candidates_.size());
    const auto position = static_cast<std::uint32_t>(&image - truth_.images.data());
    const bool joined = options_.class_agnostic;
    auto object = all_objects_.begin();
    for (auto begin = candidates_.begin(), end = begin; begin != candidates_.end(); begin = end) {
      const std::uint32_t category = joined ? 0 : begin->category;
      while (end != candidates_.end() && (joined || end->category == category)) ++end;
      const std::size_t first = out.size();
      found_.clear();
      for (auto one = begin; one != end && found_.size() < options_.max_detections.back(); ++one) {
        const auto rank = static_cast<std::uint32_t>(found_.size());
        out.push_back({all[one->index].score, category, position, rank, one->index, {}});
        found_.push_back(one->index);
      }
      objects_.clear();
      while (!joined && object != all_objects_.end() && object->first < category) ++object;
      for (; object != all_objects_.end() && (joined || object->first == category); ++object)
        objects_.push_back(object->second);
      measure(image, all);
      match(std::span(out).subspan(first));
    }
    return static_cast<std::uint32_t>(given.size() - candidates_.size());
  }

 private:
  struct Candidate {
    std::uint64_t fall;             // key of its score (score_fall)
    std::uint32_t category, index;  // in the data set, among the detections
  };
  using Object = std::pair<std::uint32_t, const Annotation*>;  // category first
  struct Target {
    std::size_t column;  // in `overlaps_`
    bool crowd, ignored, has_id;
    std::uint16_t taken;
  };

  void list(const Detections& all, Indices given) {
    candidates_.clear();
    for (const std::uint32_t index : given) {
      const int category = category_of_(all[index].category_id);
      if (category >= 0)
        candidates_.push_back(
            {score_fall(all[index].score), static_cast<std::uint32_t>(category), index});
    }
    // Where categories are joined, equal scores still go by category.
    if (options_.class_agnostic)
      std::ranges::sort(candidates_, {},
                        [](const Candidate& c) { return std::tuple(c.fall, c.category, c.index); });
    else
      std::ranges::sort(candidates_, {},
                        [](const Candidate& c) { return std::tuple(c.category, c.fall, c.index); });
  }

  void list(const Image& image) {
    all_objects_.clear();
    for (const Annotation& object : truth_.objects(image))
      all_objects_.emplace_back(category_of_(object.category_id), &object);
    std::ranges::sort(all_objects_);  // those of a category in the order of the file
  }

  void measure(const Image& image, const Detections& all) {
    areas_.clear();
    for (const std::uint32_t index : found_) areas_.push_back(area_of(all, index, options_.area));
    most_.assign(found_.size(), 0);
    if (objects_.empty()) return;
    if (options_.iou == IouType::mask)
      mask_overlaps(all, found_, objects_, truth_, image, kIouThresholds[0], overlaps_);
    else
      box_overlaps(all, found_, objects_, overlaps_);
    for (std::size_t d = 0; d < most_.size(); ++d)
      most_[d] =
          std::ranges::max(std::span(overlaps_).subspan(d * objects_.size(), objects_.size()));
  }

  void match(std::span<Scored> out) {
    const bool none_near =
        std::ranges::all_of(most_, [](double m) { return m < kIouThresholds[0]; });
    if (!none_near)
      for (std::size_t a = 0; a < kAreas; ++a) match(out, a);
    for (std::size_t d = 0; d < out.size(); ++d)
      for (std::size_t a = 0; a < kAreas; ++a) {
        Outcome& outcome = out[d].outcomes[a];
        const unsigned outside = kAreaRanges[a].has(areas_[d]) ? 0 : kEveryThreshold;
        outcome.ignored |= static_cast<std::uint16_t>(outside & ~unsigned{outcome.hit});
      }
  }

  /// Greedy, best score first: each detection takes the free object that it overlaps most. Objects
  /// that do not count come last and are taken only where no other fits; crowds can be taken again.
  void match(std::span<Scored> out, std::size_t area) {
    targets_.clear();
    for (std::size_t g = 0; g < objects_.size(); ++g) {
      const Annotation& one = *objects_[g];
      // pycocotools stores the id and tests it for truth: an object with id 0 is never hit.
      targets_.push_back({g, one.crowd, !counts(one, area), one.id != 0, 0});
    }
    std::stable_partition(targets_.begin(), targets_.end(),
                          [](const Target& t) { return !t.ignored; });

    for (std::size_t d = 0; d < out.size(); ++d) {
      Outcome& outcome = out[d].outcomes[area];
      const double* row = overlaps_.data() + d * targets_.size();
      for (std::size_t t = 0; t < kThresholds && kIouThresholds[t] <= most_[d]; ++t) {
        const auto bit = static_cast<std::uint16_t>(1U << t);
        Target* best = nullptr;
        double least = kIouThresholds[t];
        for (Target& target : targets_) {
          if ((target.taken & bit) && !target.crowd) continue;
          if (best && !best->ignored && target.ignored) break;
          if (row[target.column] < least) continue;
          least = row[target.column];  // the later one of equals
          best = &target;
        }
        if (!best) continue;
        best->taken |= bit;
        if (best->has_id) outcome.hit |= bit;
        if (best->ignored) outcome.ignored |= bit;
      }
    }
  }

  const Dataset& truth_;
  const EvaluateOptions& options_;
  CategoryIndex category_of_;
  std::vector<Candidate> candidates_;  // the image's, by category and falling score
  std::vector<Object> all_objects_;    // the image's, by category
  // For one category, or for all where they are joined.
  std::vector<std::uint32_t> found_;
  std::vector<const Annotation*> objects_;
  std::vector<double> areas_, overlaps_, most_;  // (D), (D, G), (D) the largest overlap
  std::vector<Target> targets_;
};

/// The detections of each image, in their order.
struct ByImage {
  std::vector<std::uint32_t> first;    // (images + 1) in `indices`
  std::vector<std::uint32_t> indices;  // positions of detections
  std::int64_t unknown = 0;            // images

  ByImage(const Dataset& truth, const Detections& all) : first(truth.images.size() + 1, 0) {
    if (all.size() > UINT32_MAX)
      throw Error(fmt::format("{} detections are too many: 4294967295 are the limit", all.size()));
    constexpr std::uint32_t kNoImage = UINT32_MAX;
    std::vector<std::uint32_t> owners(all.size(), kNoImage);
    const Image* image = nullptr;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!image || image->id != all[i].image_id) image = truth.find_image(all[i].image_id);
      if (!image) {
        ++unknown;
        continue;
      }
      owners[i] = static_cast<std::uint32_t>(image - truth.images.data());
      ++first[owners[i] + 1];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    indices.resize(first.back());
    auto next = first;
    for (std::size_t i = 0; i < owners.size(); ++i)
      if (owners[i] != kNoImage) indices[next[owners[i]]++] = static_cast<std::uint32_t>(i);
  }

  Indices of(std::size_t image) const {
    return std::span(indices).subspan(first[image], first[image + 1] - first[image]);
  }
};

}  // namespace

AreaFrom area_from(const Detections& detections) {
  return detections.empty() || detections[0].has_bbox ? AreaFrom::box : AreaFrom::mask;
}

EvaluateOptions checked(EvaluateOptions options) {
  auto& limits = options.max_detections;
  std::ranges::sort(limits);
  if (limits.empty() || limits.front() == 0)
    throw std::invalid_argument("max_detections: one or more numbers from 1 on are needed");
  return options;
}

bool counts(const Annotation& object, std::size_t area) {
  return !object.crowd && kAreaRanges[area].has(object.area);
}

void count_truths(const Dataset& truth, const Image& image, bool class_agnostic,
                  std::span<TruthCounts> sums) {
  for (const Annotation& object : truth.objects(image)) {
    const auto k =
        class_agnostic ? 0 : static_cast<std::size_t>(truth.category_index(object.category_id));
    for (std::size_t a = 0; a < kAreas; ++a) sums[k][a] += counts(object, a);
  }
}

std::uint32_t match_image(const Dataset& truth, const EvaluateOptions& options, const Image& image,
                          const Detections& all, Indices found, std::vector<Scored>& out) {
  return ImageMatcher(truth, options).match(image, all, found, out);
}

Matches gather(std::span<const std::vector<Scored>> images, std::size_t categories) {
  Matches matches;
  matches.truths.resize(categories);
  matches.first.assign(categories + 1, 0);
  for (const auto& image : images)
    for (const Scored& one : image) ++matches.first[one.category + 1];
  std::partial_sum(matches.first.begin(), matches.first.end(), matches.first.begin());
  matches.detections.resize(matches.first.back());
  auto next = matches.first;
  for (const auto& image : images)
    for (const Scored& one : image) matches.detections[next[one.category]++] = one;
  return matches;
}

Matches match(const Dataset& truth, const Detections& detections, const EvaluateOptions& options,
              std::span<const std::int64_t> image_ids) {
  std::vector<bool> chosen(truth.images.size(), image_ids.empty());
  for (const std::int64_t id : image_ids)
    if (const Image* image = truth.find_image(id))
      chosen[static_cast<std::size_t>(image - truth.images.data())] = true;

  const ByImage by_image(truth, detections);
  std::vector<std::vector<Scored>> outcomes(truth.images.size());
  std::vector<std::uint32_t> unknown(truth.images.size());
  tbb::enumerable_thread_specific<ImageMatcher> matchers(
      [&] { return ImageMatcher(truth, options); });
  tbb::parallel_for(std::size_t{0}, truth.images.size(), [&](std::size_t i) {
    if (chosen[i])
      unknown[i] = matchers.local().match(truth.images[i], detections, by_image.of(i), outcomes[i]);
  });

  Matches matches = gather(outcomes, category_count(truth, options));
  for (std::size_t i = 0; i < truth.images.size(); ++i)
    if (chosen[i]) count_truths(truth, truth.images[i], options.class_agnostic, matches.truths);
  matches.unknown_images = by_image.unknown;
  matches.unknown_categories = std::accumulate(unknown.begin(), unknown.end(), std::int64_t{0});
  return matches;
}

}  // namespace millrace::coco
