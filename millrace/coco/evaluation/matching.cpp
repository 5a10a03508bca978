#include "millrace/coco/evaluation/matching.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>

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
  return ImageMatcher(plan).match(image, all, found, out);
}

Matches gather(std::span<const ImageMatches> images, const Extent& extent) {
  Matches matches(extent);
  for (const ImageMatches& image : images)
    for (const Scored& one : image.detections) ++matches.first[one.category + 1];
  std::partial_sum(matches.first.begin(), matches.first.end(), matches.first.begin());
  const std::size_t stride = extent.outcomes();
  matches.detections.resize(matches.first.back());
  matches.outcomes.resize(matches.first.back() * stride);
  auto next = matches.first;
  for (const ImageMatches& image : images) {
    const Outcome* outcomes = image.outcomes.data();
    for (const Scored& one : image.detections) {
      const std::size_t at = next[one.category]++;
      matches.detections[at] = one;
      std::copy_n(outcomes, stride, matches.outcomes.data() + at * stride);
      outcomes += stride;
    }
  }
  return matches;
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
  std::vector<ImageMatches> found(truth.images.size());
  tbb::parallel_for(std::size_t{0}, truth.images.size(), [&](std::size_t i) {
    if (!chosen[i]) return;
    Worker& worker = workers.local();
    const Image& image = truth.images[i];
    worker.unknown += worker.matcher.match(image, detections, by_image.of(i), found[i]);
    count_truths(plan, image, worker.truths);
  });

  Matches matches = gather(found, plan.extent);
  for (const Worker& worker : workers) {
    matches.unknown_categories += worker.unknown;
    for (std::size_t i = 0; i < matches.truths.size(); ++i) matches.truths[i] += worker.truths[i];
  }
  matches.unknown_images = by_image.unknown;
  return matches;
}

}  // namespace millrace::coco
