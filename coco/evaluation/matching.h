// The first half of the evaluation: what detections hit, by threshold and range of areas.
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

/// A detection's outcome at the thresholds of a word, in one range of areas.
struct Outcome {
  ThresholdBits hit = 0;
  ThresholdBits ignored = 0;  // neither right nor wrong
};

/// A detection that counts: one of the best of its image and category.
struct Scored {
  double score = 0;
  std::uint32_t category = 0;   // position among those evaluated, or 0 where they are joined
  std::uint32_t image = 0;      // position in the data set
  std::uint32_t rank = 0;       // within its image and category
  std::uint32_t detection = 0;  // position among the detections given
};

/// The detections of an image that count, by category and falling score.
struct ImageMatches {
  std::vector<Scored> detections;
  std::vector<Outcome> outcomes;  // Extent::outcomes() of each
};

/// Leaves new values unset: the threads that fill them touch the pages first, not the one that
/// makes the room.
template <class T>
struct LeavesUnset : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = LeavesUnset<U>;
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

  /// Those of the first 16 thresholds in the first range of areas.
  const Outcome& outcome(std::size_t detection) const {
    return outcomes[detection * extent.outcomes()];
  }
  /// Objects of a category that count in the first range of areas.
  std::int64_t objects(std::size_t category) const { return truths[category * extent.areas]; }

  /// Positions of the detections of a category, by image and falling score.
  std::span<const std::uint32_t> of(std::size_t category) const {
    return std::span(by_category).subspan(first[category], first[category + 1] - first[category]);
  }

  Extent extent;
  std::vector<Scored, LeavesUnset<Scored>> detections;  // by image, category and falling score
  std::vector<Outcome, LeavesUnset<Outcome>> outcomes;  // Extent::outcomes() of each
  std::vector<std::uint32_t, LeavesUnset<std::uint32_t>> by_category;  // see `of`
  std::vector<std::size_t> first;    // (K + 1) where each category begins in `by_category`
  std::vector<std::int64_t> truths;  // (K, A) objects that count
  std::int64_t unknown_images = 0, unknown_categories = 0;  // as in Evaluation
};

/// A key that ascends as scores fall, NaN last: pycocotools' order.
inline std::uint64_t score_fall(double score) {
  if (score != score) return UINT64_MAX;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(0.0 - score);  // never -0, which equals 0
  return bits & kSign ? ~bits : bits | kSign;
}

using Indices = std::span<const std::uint32_t>;  // positions in some Detections
using Objects = std::span<const Annotation* const>;

/// The smallest box around keypoints, x y v of each.
Xywh box_around(std::span<const double> keypoints);

/// A detection's box; without one that of the mask, or of the keypoints.
Xywh measured_box(const Detections& all, const Detections::Record& one);

/// IoU of the detections and objects of one image, as in COCO's evaluator. Fills `out` with (D, G)
/// row-major; crowds as in `mask_iou`. Boxes are those of `measured_box`.
void box_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                  std::vector<double>& out);

/// The same for masks, and where the plan says so their boundaries. Without a mask, takes the
/// filled box. Values below `least` may become 0.
void mask_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                   const Image& image, double least, std::vector<double>& out);

/// The same for keypoints (OKS). Objects without any are as those without a visible one. Values
/// below `least` may become 0. Throws Error as `evaluate`.
void keypoint_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                       double least, std::vector<double>& out);

/// Adds the objects of an image to sums (K, A).
void count_truths(const Plan& plan, const Image& image, std::span<std::int64_t> sums);

/// Fills `out` with the outcome of the detections `found` (ascending) of an image. Returns how many
/// were left out for an unknown category. Throws Error as `evaluate`.
std::uint32_t match_image(const Plan& plan, const Image& image, const Detections& all,
                          Indices found, ImageMatches& out);

/// Puts the outcomes of all images together; `truths` are left 0.
Matches gather(std::span<const ImageMatches> images, const Extent& extent);

/// By all threads of the caller's arena. Throws Error as `evaluate`.
Matches match(const Plan& plan, const Detections& detections,
              std::span<const std::int64_t> image_ids);

/// Threads that the process may use.
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

}  // namespace millrace::coco
