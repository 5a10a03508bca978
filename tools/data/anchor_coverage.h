// Which objects the anchors of a detector can learn from, without a detector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "millrace/tools/data/object_statistics.h"

namespace millrace {

/// The anchors of one level of a feature pyramid.
struct AnchorLevel {
  std::vector<Box> cells;    // of one place, around its origin
  std::int64_t stride = 16;  // pixels between places
};

/// Anchors and the rule that gives them to objects (millrace/models/ops/matcher.h).
struct AnchorRule {
  /// Fine to coarse. Each level's map is half as large as the one before, rounded up.
  std::vector<AnchorLevel> levels;
  bool stride_by_grid = false;  // torchvision: the padded side / the map's side, whole pixels
  std::int64_t divisor = 32;    // sides of the input are multiples of it
  double foreground = 0.7;      // IoU from which an anchor learns an object
  bool low_quality = true;      // an object's best anchors learn it, whatever their IoU
  double offset = 0;            // added to widths and heights (1: the legacy convention)
  double boundary = -1;         // anchors further outside of the image are not used; < 0: all are
};

/// What learns an object.
enum class Reach : std::uint8_t {
  foreground,   // an anchor with an IoU of at least AnchorRule::foreground
  low_quality,  // only anchors below that, since no others are better
  nothing,      // no anchor: others' objects overlap its best ones more, or it has none
};

struct ObjectCoverage {
  float best_iou = 0;  // with any anchor
  Reach reach = Reach::nothing;
  std::int16_t level = -1;  // of the best anchor; -1 = none
};

/// What each object of `data.objects` gets, as `match` would give it over the anchors of its image
/// alone, to the bit; crowds, which are not learned, get nothing. By all threads of the caller's
/// arena. Takes about levels x cells steps an object instead of one an anchor. Throws
/// std::invalid_argument for a rule without levels, or a stride or divisor below 1.
std::vector<ObjectCoverage> anchor_coverage(const SeenData& data, const AnchorRule& rule);

/// The objects of one kind of size, or of all.
struct CoverageCounts {
  /// Thresholds of `recalled`.
  static constexpr std::array<double, 2> kIou = {0.5, 0.7};
  std::uint64_t objects = 0;
  std::array<std::uint64_t, 3> reached{};             // by Reach
  std::array<std::uint64_t, kIou.size()> recalled{};  // whose best IoU is at least kIou

  double share(Reach reach) const;
  /// The recall that the anchors themselves would have as proposals.
  double recall(std::size_t threshold) const;
};

struct CoverageSummary {
  CoverageCounts all;
  std::array<CoverageCounts, std::tuple_size_v<SizeCounts>> by_size;  // as size_kind has them
};
CoverageSummary summary(const SeenData& data, const std::vector<ObjectCoverage>& coverage);

}  // namespace millrace
