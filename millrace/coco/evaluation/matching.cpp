#include "millrace/coco/evaluation/matching.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/image_matcher.h"
#include "millrace/coco/evaluation/images.h"

namespace millrace::coco {

AreaFrom area_from(const Detections& detections) {
  if (detections.empty() || detections[0].has_bbox) return AreaFrom::box;
  return detections[0].mask != Detections::kNoMask ? AreaFrom::mask : AreaFrom::keypoints;
}

void count_truths(const Plan& plan, const Image& image, std::span<std::int64_t> sums) {
  const std::size_t areas = plan.extent.areas;
  for (const Annotation& object : plan.truth.objects(image)) {
    const int position = plan.category(object.category_id);
    if (position < 0) continue;
    const auto k = plan.options.class_agnostic ? 0 : static_cast<std::size_t>(position);
    for (std::size_t a = 0; a < areas; ++a) sums[k * areas + a] += plan.counts(object, a);
  }
}

std::uint32_t match_image(const Plan& plan, const Image& image, const Detections& all,
                          Indices found, ImageMatches& out) {
  out.detections.resize(found.size());
  out.outcomes.resize(found.size() * plan.extent.outcomes());
  MatchRoom room{out.detections, out.outcomes};
  const std::uint32_t unknown = ImageMatcher(plan).match(image, all, found, room);
  out.detections.resize(room.detections.size());
  out.outcomes.resize(room.outcomes.size());
  return unknown;
}

namespace {

/// `Image` has detections and outcomes.
template <class Image>
Matches gather_from(std::span<const Image> images, const Extent& extent) {
  Matches matches(extent);
  const std::size_t stride = extent.outcomes(), categories = extent.categories;
  // Blocks of images are copied side by side, each to its places in the categories
  constexpr std::size_t kMostBlocks = 64, kLeastImages = 64;
  const std::size_t blocks = std::clamp<std::size_t>(images.size() / kLeastImages, 1, kMostBlocks);
  const auto block = [&](std::size_t b) {
    const std::size_t begin = images.size() * b / blocks, end = images.size() * (b + 1) / blocks;
    return images.subspan(begin, end - begin);
  };
  std::vector<std::size_t> next(blocks * categories, 0);  // numbers, then places
  tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t b) {
    for (const Image& image : block(b))
      for (const Scored& one : image.detections) ++next[b * categories + one.category];
  });
  std::size_t sum = 0;
  for (std::size_t k = 0; k < categories; ++k) {
    for (std::size_t b = 0; b < blocks; ++b) sum += std::exchange(next[b * categories + k], sum);
    matches.first[k + 1] = sum;
  }
  matches.detections.resize(sum);
  matches.outcomes.resize(sum * stride);
  tbb::parallel_for(std::size_t{0}, blocks, [&](std::size_t b) {
    for (const Image& image : block(b)) {
      const Outcome* outcomes = image.outcomes.data();
      for (const Scored& one : image.detections) {
        const std::size_t at = next[b * categories + one.category]++;
        matches.detections[at] = one;
        std::copy_n(outcomes, stride, matches.outcomes.data() + at * stride);
        outcomes += stride;
      }
    }
  });
  return matches;
}

}  // namespace

Matches gather(std::span<const ImageMatches> images, const Extent& extent) {
  return gather_from(images, extent);
}

Matches match(const Plan& plan, const Detections& detections,
              std::span<const std::int64_t> image_ids) {
  const Dataset& truth = plan.truth;
  const auto chosen = chosen_images(truth, image_ids);
  const DetectionsByImage by_image(truth, detections);
  /// A thread's.
  struct Worker {
    explicit Worker(const Plan& plan)
        : matcher(plan), truths(plan.extent.categories * plan.extent.areas, 0) {}
    ImageMatcher matcher;
    std::vector<std::int64_t> truths;
    std::int64_t unknown = 0;
  };
  tbb::enumerable_thread_specific<Worker> workers([&] { return Worker(plan); });
  const std::size_t stride = plan.extent.outcomes();
  std::vector<Scored, LeavesUnset<Scored>> all_found(by_image.indices.size());
  std::vector<Outcome, LeavesUnset<Outcome>> all_outcomes(by_image.indices.size() * stride);
  std::vector<MatchRoom> found(truth.images.size());
  tbb::parallel_for(std::size_t{0}, truth.images.size(), [&](std::size_t i) {
    if (!chosen[i]) return;
    Worker& worker = workers.local();
    const Image& image = truth.images[i];
    const auto given = by_image.of(i);
    found[i] = {std::span(all_found).subspan(by_image.first[i], given.size()),
                std::span(all_outcomes).subspan(by_image.first[i] * stride, given.size() * stride)};
    worker.unknown += worker.matcher.match(image, detections, given, found[i]);
    count_truths(plan, image, worker.truths);
  });

  Matches matches = gather_from(std::span<const MatchRoom>(found), plan.extent);
  for (const Worker& worker : workers) {
    matches.unknown_categories += worker.unknown;
    for (std::size_t i = 0; i < matches.truths.size(); ++i) matches.truths[i] += worker.truths[i];
  }
  matches.unknown_images = by_image.unknown;
  return matches;
}

}  // namespace millrace::coco
