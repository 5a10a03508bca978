#include "coco/matching.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "base/errors.h"
#include "coco/overlaps.h"

namespace millrace::coco {
namespace {

struct Range {
  double low, high;  // both ends belong to it
  bool has(double area) const { return !(area < low || area > high); }
};
constexpr Range kAreaRanges[kAreas] = {
    {0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}};

double area_of(const Detections& all, std::uint32_t index, AreaFrom from) {
  const Detections::Record& one = all[index];
  if (from == AreaFrom::box) {
    if (one.has_bbox) return one.bbox[2] * one.bbox[3];
    throw Error(fmt::format("detection {} (image {}) has no box, and areas are taken from boxes",
                            index, one.image_id));
  }
  if (one.mask != Detections::kNoMask) return all.mask_of(one).pixels;
  throw Error(fmt::format("detection {} (image {}) has no mask, and areas are taken from masks",
                          index, one.image_id));
}

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

struct ImageMatcher::Scratch {
  const Dataset& truth;
  const EvaluateOptions& options;
  const std::uint32_t most = options.max_detections.back();

  struct Candidate {
    double score;
    std::uint32_t category, index;  // in the data set, among the detections
  };
  struct Target {
    std::size_t column;  // in `overlaps`
    bool crowd, ignored, has_id;
    std::uint16_t taken;
  };
  std::vector<Candidate> candidates;
  std::vector<std::pair<std::uint32_t, const Annotation*>> truths;  // category, object
  // Of one category.
  std::vector<std::uint32_t> found;
  std::vector<const Annotation*> objects;
  std::vector<double> areas, overlaps;  // (D), (D, G)
  std::vector<Target> targets;

  /// Where categories are joined, detections and objects of equal rank still go by category.
  bool same_cell(std::uint32_t a, std::uint32_t b) const {
    return options.class_agnostic || a == b;
  }

  std::uint32_t list_candidates(const Detections& all, std::span<const std::uint32_t> given);
  void list_truths(const Image& image);
  void match(const Image& image, const Detections& all, std::span<Scored> out);
  void match(std::span<Scored> out, std::size_t area);
};

std::uint32_t ImageMatcher::Scratch::list_candidates(const Detections& all,
                                                     std::span<const std::uint32_t> given) {
  candidates.clear();
  for (const std::uint32_t index : given) {
    const int category = truth.category_index(all[index].category_id);
    if (category >= 0)
      candidates.push_back({all[index].score, static_cast<std::uint32_t>(category), index});
  }
  std::ranges::sort(candidates, [&](const Candidate& a, const Candidate& b) {
    if (!same_cell(a.category, b.category)) return a.category < b.category;
    if (scores_higher(a.score, b.score)) return true;
    if (scores_higher(b.score, a.score)) return false;
    return std::tie(a.category, a.index) < std::tie(b.category, b.index);
  });
  return static_cast<std::uint32_t>(given.size() - candidates.size());
}

void ImageMatcher::Scratch::list_truths(const Image& image) {
  truths.clear();
  for (const Annotation& object : truth.objects(image))
    truths.emplace_back(truth.category_index(object.category_id), &object);
  std::ranges::sort(truths);  // objects of a category lie in the order of the file
}

/// The detections `found` and the `objects` of one category, which may be all.
void ImageMatcher::Scratch::match(const Image& image, const Detections& all,
                                  std::span<Scored> out) {
  areas.clear();
  for (const std::uint32_t index : found) areas.push_back(area_of(all, index, options.area));
  overlaps.clear();
  if (!objects.empty()) {
    if (options.iou == IouType::mask)
      mask_overlaps(all, found, objects, truth, image, kIouThresholds[0], overlaps);
    else
      box_overlaps(all, found, objects, overlaps);
  }
  for (std::size_t a = 0; a < kAreas; ++a) match(out, a);
}

/// Greedy, best score first: each detection takes the free object that it overlaps most. Objects that do not count
/// come last and are taken only where no other fits; crowds can be taken again.
void ImageMatcher::Scratch::match(std::span<Scored> out, std::size_t area) {
  targets.clear();
  for (std::size_t g = 0; g < objects.size(); ++g) {
    const Annotation& one = *objects[g];
    // pycocotools stores the id and tests it for truth: an object with id 0 is never hit.
    targets.push_back({g, one.crowd, !counts(one, area), one.id != 0, 0});
  }
  std::stable_partition(targets.begin(), targets.end(), [](const Target& t) { return !t.ignored; });

  for (std::size_t d = 0; d < out.size(); ++d) {
    Outcome& outcome = out[d].outcomes[area];
    const double* row = overlaps.data() + d * targets.size();
    const double most_overlap = targets.empty() ? 0 : *std::max_element(row, row + targets.size());
    for (std::size_t t = 0; t < kThresholds && kIouThresholds[t] <= most_overlap; ++t) {
      const auto bit = static_cast<std::uint16_t>(1U << t);
      Target* best = nullptr;
      double least = kIouThresholds[t];
      for (Target& target : targets) {
        if ((target.taken & bit) && !target.crowd) continue;
        if (best && !best->ignored && target.ignored) break;
        if (row[target.column] < least) continue;
        least = row[target.column];  // of equals, the later one
        best = &target;
      }
      if (!best) continue;
      best->taken |= bit;
      if (best->has_id) outcome.hit |= bit;
      if (best->ignored) outcome.ignored |= bit;
    }
    if (!kAreaRanges[area].has(areas[d])) {
      outcome.ignored |= static_cast<std::uint16_t>(~outcome.hit);
    }
  }
}

ImageMatcher::ImageMatcher(const Dataset& truth, const EvaluateOptions& options)
    : scratch_(new Scratch{truth, options}) {}
ImageMatcher::~ImageMatcher() = default;

std::uint32_t ImageMatcher::match(const Image& image, const Detections& all,
                                  std::span<const std::uint32_t> found, std::vector<Scored>& out) {
  Scratch& s = *scratch_;
  const std::uint32_t unknown = s.list_candidates(all, found);
  s.list_truths(image);
  auto object = s.truths.begin();
  for (auto begin = s.candidates.begin(), end = begin; begin != s.candidates.end(); begin = end) {
    while (end != s.candidates.end() && s.same_cell(end->category, begin->category)) ++end;
    const std::size_t kept = std::min<std::size_t>(static_cast<std::size_t>(end - begin), s.most);
    const std::uint32_t category = s.options.class_agnostic ? 0 : begin->category;
    const std::size_t first = out.size();
    s.found.clear();
    for (std::uint32_t rank = 0; rank < kept; ++rank) {
      const auto& one = begin[rank];
      s.found.push_back(one.index);
      out.push_back({one.score,
                     category,
                     static_cast<std::uint32_t>(&image - s.truth.images.data()),
                     rank,
                     one.index,
                     {}});
    }
    s.objects.clear();
    while (object != s.truths.end() && !s.same_cell(object->first, begin->category) &&
           object->first < begin->category)
      ++object;
    for (; object != s.truths.end() && s.same_cell(object->first, begin->category); ++object)
      s.objects.push_back(object->second);
    s.match(image, all, std::span(out).subspan(first));
  }
  return unknown;
}

namespace {

/// The detections of each image, in their order.
struct ByImage {
  std::vector<std::uint32_t> first;    // (images + 1) in `indices`
  std::vector<std::uint32_t> indices;  // of detections
  std::int64_t unknown = 0;            // images

  ByImage(const Dataset& truth, const Detections& all) : first(truth.images.size() + 1, 0) {
    if (all.size() > UINT32_MAX)
      throw Error(fmt::format("{} detections are too many: 4294967295 are the limit", all.size()));
    constexpr std::uint32_t kNowhere = UINT32_MAX;
    std::vector<std::uint32_t> owners(all.size(), kNowhere);
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
      if (owners[i] != kNowhere) indices[next[owners[i]]++] = static_cast<std::uint32_t>(i);
  }

  std::span<const std::uint32_t> of(std::size_t image) const {
    return std::span(indices).subspan(first[image], first[image + 1] - first[image]);
  }
};

}  // namespace

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
