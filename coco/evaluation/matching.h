// The first half of the evaluation: the matches of detections, by threshold and area range.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "millrace/coco/evaluation/plan.h"

namespace millrace::coco {

/// The outcome of a detection at the thresholds of a word, in one area range.
struct Outcome {
  ThresholdBits hit = 0;
  ThresholdBits ignored = 0;  // counts neither as right nor as wrong
};

/// A detection that counts, that is, one within the limit of its image and category.
struct Scored {
  double score = 0;
  std::uint32_t category = 0;   // position among the evaluated categories; 0 if they are joined
  std::uint32_t image = 0;      // position in the data set
  std::uint32_t rank = 0;       // rank by score within its image and category
  std::uint32_t detection = 0;  // position among the given detections
};

/// The counted detections of an image, by category and falling score.
struct ImageMatches {
  std::vector<Scored> detections;
  std::vector<Outcome> outcomes;  // Extent::outcomes() per detection
};

/// An allocator that leaves new values uninitialized, so that the threads that fill them touch the
/// pages first, not the allocating thread.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U>
  void construct(U*) noexcept {}
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    std::construct_at(at, std::forward<Arguments>(arguments)...);
  }
};

struct Matches {
  Matches() = default;
  explicit Matches(const Extent& size)
      : extent(size), first(size.categories + 1, 0), truths(size.categories * size.areas, 0) {}

  /// Returns the outcome at the first 16 thresholds in the first area range.
  const Outcome& outcome(std::size_t detection) const {
    return outcomes[detection * extent.outcomes()];
  }
  /// Returns the number of objects of a category that count in the first area range.
  std::int64_t objects(std::size_t category) const { return truths[category * extent.areas]; }

  /// Returns the positions of the detections of a category, by image and falling score.
  std::span<const std::uint32_t> of(std::size_t category) const {
    return std::span(by_category).subspan(first[category], first[category + 1] - first[category]);
  }

  Extent extent;
  template <class T>
  using Array = std::vector<T, UninitializedAllocator<T>>;
  Array<Scored> detections;          // by image, category and falling score
  Array<Outcome> outcomes;           // Extent::outcomes() per detection
  Array<std::uint32_t> by_category;  // see `of`
  std::vector<std::size_t> first;    // [K + 1] offset of each category in `by_category`
  std::vector<std::int64_t> truths;  // [K, A] number of objects that count
  std::int64_t unknown_images = 0, unknown_categories = 0;  // see Evaluation
};

/// Returns a sort key that ascends with falling scores, NaN last, which is pycocotools' order.
inline std::uint64_t descending_score_key(double score) {
  if (score != score) return UINT64_MAX;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  // Never -0, so that equal scores have equal bits.
  const auto bits = std::bit_cast<std::uint64_t>(0.0 - score);
  return bits & kSign ? ~bits : bits | kSign;
}

using Indices = std::span<const std::uint32_t>;  // positions in a Detections object
using Objects = std::span<const Annotation* const>;

/// Returns the smallest box around keypoints x, y, v.
Xywh box_around(std::span<const double> keypoints);

/// Returns a detection's box; if it has none, the box of its mask or keypoints.
Xywh measured_box(const Detections& all, const Detections::Record& one);

/// Computes the IoU of detections and objects of one image as COCO's evaluator does. Fills `out`
/// with [D, G], row-major; crowds as in `mask_iou`. Boxes are those of `measured_box`.
void box_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                  std::vector<double>& out);

/// Computes the IoU of masks, and of their boundaries if the plan asks for it. A detection without
/// a mask is its filled box. Values below `least` may become 0.
void mask_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                   const Image& image, double least, std::vector<double>& out);

/// Computes the OKS of keypoints. Objects without keypoints are treated as if none were visible.
/// Values below `least` may become 0. Throws Error like `evaluate`.
void keypoint_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                       double least, std::vector<double>& out);

/// Adds the number of counted objects of an image to `sums`, [K, A].
void count_truths(const Plan& plan, const Image& image, std::span<std::int64_t> sums);

/// Computes the outcomes of the detections `found` (ascending positions) of an image. Returns the
/// number left out for an unknown category. Throws Error like `evaluate`.
std::uint32_t match_image(const Plan& plan, const Image& image, const Detections& all,
                          Indices found, ImageMatches& out);

/// Joins the outcomes of all images; `truths` stay 0.
Matches gather(std::span<const ImageMatches> images, const Extent& extent);

/// Matches all detections on all threads of the caller's arena. Throws Error like `evaluate`.
Matches match(const Plan& plan, const Detections& detections,
              std::span<const std::int64_t> image_ids);

/// Returns the number of threads that the process may use.
inline int allowed_threads() {
  return static_cast<int>(
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
}

/// Runs `body` on `threads` of the process's threads; 0 = all.
template <class Body>
auto in_arena(int threads, const Body& body) {
  const int allowed = allowed_threads();
  tbb::task_arena arena(threads > 0 ? std::min(threads, allowed) : allowed);
  return arena.execute(body);
}

/// Returns for each image whether its id is in `ids`; true for all images if `ids` is empty.
std::vector<bool> chosen_images(const Dataset& truth, std::span<const std::int64_t> ids);

/// The detections of each image, in their original order.
struct DetectionsByImage {
  /// Throws Error for more than 4294967295 detections.
  DetectionsByImage(const Dataset& truth, const Detections& all);

  std::span<const std::uint32_t> of(std::size_t image) const {
    return std::span(indices).subspan(first[image], first[image + 1] - first[image]);
  }

  std::vector<std::uint32_t> first;    // [images + 1] offsets in `indices`
  std::vector<std::uint32_t> indices;  // positions of detections
  std::int64_t unknown = 0;            // detections of unknown images
};

}  // namespace millrace::coco
