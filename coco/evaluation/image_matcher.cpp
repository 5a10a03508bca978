#include "millrace/coco/evaluation/image_matcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/box_iou.h"

namespace millrace::coco {
namespace {

double area_of(const Detections& all, std::uint32_t index, AreaFrom from) {
  const Detections::Record& one = all[index];
  if (from == AreaFrom::given) return one.area;
  if (from == AreaFrom::box && one.has_bbox) return one.bbox[2] * one.bbox[3];
  const bool has_mask = one.mask != Detections::kNoMask;
  if (has_mask && from != AreaFrom::keypoints) return all.mask_of(one).extent.pixels;
  if (from == AreaFrom::mask || one.keypoints == Detections::kNoKeypoints) {
    const char* what = from == AreaFrom::keypoints ? "keypoints" : "mask";
    throw Error(fmt::format("detection {} (image {}) has no {}, but areas are computed from {}",
                            index, one.image_id, what,
                            from == AreaFrom::keypoints ? what : "masks"));
  }
  const Xywh box = box_around(all.keypoints_of(one));
  return box[2] * box[3];
}

}  // namespace

/// Returns the detections of an image with the best scores, up to the limit.
Indices ImageMatcher::best_of(const Detections& all, Indices given) {
  const std::size_t limit = plan_.options.max_detections.back();
  if (given.size() <= limit) return given;
  best_.assign(given.begin(), given.end());
  std::ranges::stable_sort(best_, {},
                           [&](std::uint32_t i) { return descending_score_key(all[i].score); });
  best_.resize(limit);
  return best_;
}

void ImageMatcher::find_evaluated(const Image& image) {
  evaluated_.assign(plan_.category.ids().size(), 0);
  for (const Object& object : all_objects_) evaluated_[object.first] = 1;
  for (const std::int64_t id : plan_.truth.negative_categories(image))
    if (const int k = plan_.category(id); k >= 0) evaluated_[static_cast<std::size_t>(k)] = 1;
}

std::uint32_t ImageMatcher::list(const Image& image, const Detections& all, Indices given) {
  const bool federated = plan_.options.federated;
  if (federated) {
    given = best_of(all, given);
    find_evaluated(image);
  }
  std::uint32_t unknown = 0;
  listed_.clear();
  for (const std::uint32_t index : given) {
    const std::int64_t id = all[index].category_id;
    const int k = plan_.category(id);
    if (k < 0) {
      unknown += plan_.truth.category_index(id) < 0;
      continue;
    }
    if (federated && !(evaluated_[static_cast<std::size_t>(k)] &&
                       plan_.has_area(area_of(all, index, plan_.options.area))))
      continue;
    listed_.push_back(
        {descending_score_key(all[index].score), static_cast<std::uint32_t>(k), index});
  }
  const std::size_t categories = plan_.category.ids().size();
  if (plan_.options.class_agnostic || categories > 256 + 8 * listed_.size()) {
    // With joined categories, equal scores are ordered by category.
    const bool joined = plan_.options.class_agnostic;
    std::ranges::sort(listed_, {}, [joined](const Candidate& c) {
      return std::tuple(joined ? 0 : c.category, c.score_key, c.category, c.index);
    });
    candidates_.swap(listed_);
    return unknown;
  }
  places_.assign(categories + 1, 0);
  for (const Candidate& one : listed_) ++places_[one.category + 1];
  for (std::size_t k = 0; k < categories; ++k) places_[k + 1] += places_[k];
  candidates_.resize(listed_.size());
  for (const Candidate& one : listed_) candidates_[places_[one.category]++] = one;
  auto begin = candidates_.begin();
  while (begin != candidates_.end()) {
    const auto end = candidates_.begin() + places_[begin->category];
    if (end - begin > 1)
      std::sort(begin, end, [](const Candidate& a, const Candidate& b) {
        return a.score_key != b.score_key ? a.score_key < b.score_key : a.index < b.index;
      });
    begin = end;
  }
  return unknown;
}

void ImageMatcher::list(const Image& image) {
  all_objects_.clear();
  for (const Annotation& object : plan_.truth.objects(image))
    if (const int k = plan_.category(object.category_id); k >= 0 && plan_.has_area(object.area))
      all_objects_.emplace_back(k, &object);
  std::ranges::sort(all_objects_);  // objects of a category stay in file order
}

void ImageMatcher::measure(const Image& image, const Detections& all) {
  near_.clear();
  near_ends_.clear();
  overlaps_.clear();
  if (found_.empty() || objects_.empty()) return;
  constexpr std::size_t kMany = 64;  // number of objects from which sorting pays off
  const bool sweeps = plan_.options.iou == IouType::box && !keeps_overlaps_ && plan_.least > 0 &&
                      objects_.size() >= kMany;
  if (sweeps)
    sweep(all);
  else
    measure_pairs(image, all);
  if (near_.empty()) return;
  counts_.clear();
  for (std::size_t a = 0; a < plan_.extent.areas; ++a)
    for (const Annotation* object : objects_) counts_.push_back(plan_.counts(*object, a));
}

/// Fills `near_` from the overlaps of all pairs, computed for a limited number of detections at
/// once.
void ImageMatcher::measure_pairs(const Image& image, const Detections& all) {
  constexpr std::size_t kPairs = std::size_t{1} << 22;  // 32 MiB
  const std::size_t together =
      keeps_overlaps_ ? found_.size() : std::max<std::size_t>(1, kPairs / objects_.size());
  for (std::size_t first = 0; first < found_.size(); first += together) {
    const Indices found = Indices(found_).subspan(first, std::min(together, found_.size() - first));
    switch (plan_.options.iou) {
      case IouType::box:
        box_overlaps(plan_, all, found, objects_, overlaps_);
        break;
      case IouType::mask:
      case IouType::boundary:
        mask_overlaps(plan_, all, found, objects_, image, least_, overlaps_);
        break;
      case IouType::keypoints:
        keypoint_overlaps(plan_, all, found, objects_, least_, overlaps_);
        break;
    }
    add_near(found.size());
  }
}

/// Fills `near_` without measuring overlaps that are certainly 0, since 0 reaches no threshold.
void ImageMatcher::sweep(const Detections& all) {
  sweep_.begin(objects_);
  for (const std::uint32_t d : found_) {
    const std::size_t begin = near_.size();
    const Xywh box = measured_box(all, all[d]);
    for (const std::uint32_t g : sweep_.beside(box)) {
      const double overlap = box_iou(box.data(), objects_[g]->bbox, plan_.crowd(*objects_[g]));
      if (!(overlap < plan_.least)) near_.push_back({overlap, g, 0});
    }
    end_near(begin);
  }
}

/// Adds the objects that the next detections overlap enough to `near_`.
void ImageMatcher::add_near(std::size_t found) {
  const double* overlap = overlaps_.data();
  for (std::size_t d = 0; d < found; ++d) {
    const std::size_t begin = near_.size();
    for (std::uint32_t g = 0; g < objects_.size(); ++g, ++overlap)
      if (!(*overlap < plan_.least)) near_.push_back({*overlap, g, 0});
    end_near(begin);
  }
}

void ImageMatcher::end_near(std::size_t begin) {
  if (near_.size() - begin > 1)
    std::ranges::sort(std::span(near_).subspan(begin), std::greater(),
                      [](const Near& near) { return std::pair(near.overlap, near.object); });
  near_ends_.push_back(near_.size());
}

void ImageMatcher::ignore_outside(const Image& image, const Detections& all,
                                  std::span<Outcome> out) const {
  const auto in_part = plan_.options.federated ? plan_.truth.not_exhaustive_categories(image)
                                               : std::span<const std::int64_t>();
  const Extent& extent = plan_.extent;
  const std::size_t words = extent.words();
  Outcome* outcome = out.data();
  for (const std::uint32_t index : found_) {
    const double area = area_of(all, index, plan_.options.area);
    const bool excused =
        !in_part.empty() && std::ranges::count(in_part, all[index].category_id) > 0;
    for (const AreaRange& range : plan_.options.area_ranges) {
      const bool outside = excused || !range.has(area);
      for (std::size_t w = 0; w < words; ++w, ++outcome)
        if (outside)
          outcome->ignored |=
              static_cast<ThresholdBits>(extent.all_bits(w) & ~unsigned{outcome->hit});
    }
  }
}

std::uint32_t ImageMatcher::match(const Image& image, const Detections& all, Indices given,
                                  MatchRoom& out) {
  const auto position = static_cast<std::uint32_t>(&image - plan_.truth.images.data());
  const std::size_t stride = plan_.extent.outcomes();
  std::size_t count = 0;
  const std::uint32_t unknown = each_category(image, all, given, [&](std::uint32_t k) {
    if (found_.empty()) return;
    const auto outcomes = out.outcomes.subspan(count * stride, found_.size() * stride);
    std::uint32_t rank = 0;
    for (const std::uint32_t index : found_)
      out.detections[count++] = {all[index].score, k, position, rank++, index};
    std::ranges::fill(outcomes, Outcome());
    match(image, all, outcomes,
          [](std::size_t, std::size_t, ThresholdBits, std::size_t, std::uint32_t) {});
  });
  out = {out.detections.first(count), out.outcomes.first(count * stride)};
  return unknown;
}

void BoxSweep::begin(Objects objects) {
  finite_ = std::ranges::all_of(objects, [](const Annotation* object) {
    return std::isfinite(object->bbox[0]) && std::isfinite(object->bbox[2] + object->bbox[0]);
  });
  by_left_.resize(objects.size());
  std::iota(by_left_.begin(), by_left_.end(), 0U);
  if (!finite_) return;
  std::ranges::sort(by_left_, {}, [&](std::uint32_t g) { return objects[g]->bbox[0]; });
  left_.clear();
  farthest_.clear();
  double farthest = -std::numeric_limits<double>::infinity();
  for (const std::uint32_t g : by_left_) {
    const double* box = objects[g]->bbox;
    left_.push_back(box[0]);
    farthest_.push_back(farthest = std::max(farthest, box[2] + box[0]));
  }
}

std::span<const std::uint32_t> BoxSweep::beside(const Xywh& box) const {
  const double left = box[0], right = box[2] + box[0];  // summed as in box_iou
  if (!finite_ || !std::isfinite(left) || !std::isfinite(right)) return by_left_;
  const auto begin = std::ranges::upper_bound(farthest_, left) - farthest_.begin();
  const auto end = std::ranges::lower_bound(left_, right) - left_.begin();
  if (begin >= end) return {};
  return std::span(by_left_).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(end - begin));
}

}  // namespace millrace::coco
