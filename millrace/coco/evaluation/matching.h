// The first half of the evaluation: what detections hit, by threshold and range of areas.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

inline constexpr std::size_t kThresholds = 10, kAreas = 4;

/// numpy's linspace, to the bit: the ninth of .5, .55, ... .95 is 0.8999999999999999.
template <std::size_t N>
constexpr std::array<double, N> linspace(double start, double stop) {
  std::array<double, N> values{};
  const double step = (stop - start) / static_cast<double>(N - 1);
  for (std::size_t i = 0; i + 1 < N; ++i) values[i] = start + static_cast<double>(i) * step;
  values[N - 1] = stop;
  return values;
}
inline constexpr auto kIouThresholds = linspace<kThresholds>(.5, .95);

/// A bit for each threshold.
inline constexpr unsigned kEveryThreshold = (1U << kThresholds) - 1;

/// A detection's outcome in one range of areas; bit t is for threshold t.
struct Outcome {
  std::uint16_t hit = 0;
  std::uint16_t ignored = 0;  // neither right nor wrong
};

/// A detection that counts: one of the best of its image and category.
struct Scored {
  double score = 0;
  std::uint32_t category = 0;   // position in the data set, or 0 where categories are joined
  std::uint32_t image = 0;      // position in the data set
  std::uint32_t rank = 0;       // within its image and category
  std::uint32_t detection = 0;  // position among the detections given
  std::array<Outcome, kAreas> outcomes;
};

/// Objects that count, in each range of areas.
using TruthCounts = std::array<std::int64_t, kAreas>;

struct Matches {
  std::vector<Scored> detections;   // by category, image, and falling score
  std::vector<std::size_t> first;   // (K + 1) where each category's detections begin
  std::vector<TruthCounts> truths;  // (K)
  std::int64_t unknown_images = 0, unknown_categories = 0;  // as in Evaluation
};

/// A key that ascends as scores fall, NaN last: pycocotools' order.
inline std::uint64_t score_fall(double score) {
  if (score != score) return UINT64_MAX;
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(0.0 - score);  // never -0, which equals 0
  return bits & kSign ? ~bits : bits | kSign;
}

/// The options with limits in ascending order. Throws std::invalid_argument for none or 0.
EvaluateOptions checked(EvaluateOptions options);

/// Whether an object counts in a range of areas.
bool counts(const Annotation& object, std::size_t area);

/// The K of an evaluation.
inline std::size_t category_count(const Dataset& truth, const EvaluateOptions& options) {
  return options.class_agnostic ? 1 : truth.categories.size();
}

/// Adds the objects of an image to the sums of their categories (K).
void count_truths(const Dataset& truth, const Image& image, bool class_agnostic,
                  std::span<TruthCounts> sums);

using Indices = std::span<const std::uint32_t>;  // positions in some Detections
using Objects = std::span<const Annotation* const>;

/// IoU of the detections and objects of one image, as in COCO's evaluator. Fills `out` with (D, G)
/// row-major; crowds as in `mask_iou`. Without a box, takes that of the mask.
void box_overlaps(const Detections& all, Indices found, Objects objects, std::vector<double>& out);

/// The same for masks. Without a mask, takes the filled box. Values below `least` may become 0.
void mask_overlaps(const Detections& all, Indices found, Objects objects, const Dataset& truth,
                   const Image& image, double least, std::vector<double>& out);

/// Appends the outcome of the detections `found` (ascending) of an image, by category and falling
/// score. Returns how many were left out for an unknown category. The options are `checked`. Throws
/// Error as `evaluate`.
std::uint32_t match_image(const Dataset& truth, const EvaluateOptions& options, const Image& image,
                          const Detections& all, Indices found, std::vector<Scored>& out);

/// Puts the outcomes of all images together, by category; `truths` are left 0.
Matches gather(std::span<const std::vector<Scored>> images, std::size_t categories);

/// By all threads of the caller's arena. Throws Error as `evaluate`.
Matches match(const Dataset& truth, const Detections& detections, const EvaluateOptions& options,
              std::span<const std::int64_t> image_ids);

/// Runs `body` on so many of the process's threads; 0: all of them.
template <class Body>
auto in_arena(int threads, const Body& body) {
  const int allowed = static_cast<int>(
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  tbb::task_arena arena(threads > 0 ? std::min(threads, allowed) : allowed);
  return arena.execute(body);
}

}  // namespace millrace::coco
