// Assigns ground truth to boxes.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

struct Matches {
  at::Tensor truth;  // (N) int64: index of the best ground truth; 0 if not matched
  at::Tensor label;  // (N) int8: 1 foreground, 0 background, -1 between the thresholds (ignored)
};

struct MatchOptions {
  double bg_iou_thresh = 0.5, fg_iou_thresh = 0.5;  // below: background; from: foreground
  /// The best boxes of each ground truth (ties included) are foreground at any IoU, and keep their
  /// own best truth, as in detectron2's and torchvision's Matcher, except that a truth that
  /// overlaps no box has no best box (theirs: all boxes).
  bool low_quality = false;
  double offset = 0;  // added to widths and heights (1: the legacy convention)
};

/// Matches boxes (N, 4) to the ground truth (G, 4) with the highest IoU, the first one if equal. G
/// may be 0. The G x N overlaps are computed by blocks and not stored: memory is N + G N / 1024
/// numbers.
Matches match(const at::Tensor& truth, const at::Tensor& boxes, const MatchOptions& options);

/// Matches the boxes (N, P, 4) of each image of a batch. `truth` (G, 4) has the ground truth of all
/// images in order, `begins` (N + 1) int64 the index of each image's first. Returns (N, P) each;
/// indices are among all G.
Matches match(const at::Tensor& truth, const at::Tensor& begins, const at::Tensor& boxes,
              const MatchOptions& options);

}  // namespace millrace
