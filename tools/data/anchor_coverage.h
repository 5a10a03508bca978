// Computes which objects a detector's anchors can learn, without running the detector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "millrace/tools/data/object_statistics.h"

namespace millrace {

/// The anchors of one level of a feature pyramid.
struct AnchorLevel {
  std::vector<Box> cells;    // anchors of one position, around the origin
  std::int64_t stride = 16;  // pixels between positions
};

/// The anchors of a detector and the rule that matches them to objects
/// (millrace/models/ops/matcher.h).
struct AnchorRule {
  /// Levels from fine to coarse. Each level's map has half the size of the previous one, rounded
  /// up.
  std::vector<AnchorLevel> levels;
  bool stride_by_grid = false;  // torchvision's stride: padded image side / map side, rounded down
  std::int64_t divisor = 32;    // the sides of the input are multiples of it
  double foreground = 0.7;      // minimum IoU of a foreground anchor
  bool low_quality = true;      // an object's best anchors are foreground whatever their IoU
  double offset = 0;            // added to widths and heights (1 = the legacy convention)
  double boundary = -1;         // anchors that extend further outside the image, in pixels, are not
                                // used; negative = no limit
};

/// The kind of match of an object.
enum class MatchKind : std::uint8_t {
  foreground,   // by an anchor with an IoU of at least AnchorRule::foreground
  low_quality,  // only by its best anchors, with a lower IoU
  nothing,      // by no anchor: its best anchors overlap other objects more, or do not exist
};

struct ObjectCoverage {
  float best_iou = 0;  // highest IoU with any anchor
  MatchKind match = MatchKind::nothing;
};

/// Returns the coverage of each object of `data.objects`. The results have the same bits as `match`
/// over all anchors of the image. Crowds are not matched. Uses all threads of the caller's arena.
/// The cost per object is about levels x cells steps instead of one per anchor. Throws
/// std::invalid_argument for a rule without levels, or a stride or divisor below 1.
std::vector<ObjectCoverage> anchor_coverage(const SeenData& data, const AnchorRule& rule);

/// Counts of objects of one size kind, or of all.
struct CoverageCounts {
  /// IoU thresholds of `recalled`.
  static constexpr std::array<double, 2> kIou = {0.5, 0.7};
  std::uint64_t objects = 0;
  std::array<std::uint64_t, 3> matched{};             // objects, indexed by MatchKind
  std::array<std::uint64_t, kIou.size()> recalled{};  // objects with a best IoU of at least kIou

  double share(MatchKind kind) const;
  /// Returns the recall of the anchors as proposals.
  double recall(std::size_t threshold) const;
};

struct CoverageSummary {
  CoverageCounts all;
  std::array<CoverageCounts, std::tuple_size_v<SizeCounts>> by_size;  // indexed by size_kind()
};
CoverageSummary summary(const SeenData& data, const std::vector<ObjectCoverage>& coverage);

}  // namespace millrace
