// Which regions of an image are trained on, and what each of them is.
// Shapes: P candidate regions, R regions drawn, F of them foreground, G objects.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "millrace/models/layers/objects.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/trainer/detector/detector.h"

namespace millrace {

/// The regions of one image that may be drawn from.
struct Candidates {
  at::Tensor boxes;  // (P, 4)
  Matches matches;   // of each box
};

/// Boxes (P, 4) with IoU >= `iou` to an object are foreground, the others background; `offset` as
/// in match.
Candidates match_regions(const at::Tensor& boxes, const Truth& truth, double iou, double offset);

/// Regions drawn from one image: R of them, foreground first.
struct SampledRegions {
  at::Tensor boxes;             // (R, 4)
  at::Tensor truth;             // (F) int64: ground truth of each foreground region
  std::int64_t foreground = 0;  // F
};

/// Draws `count` candidates of which up to `count * positive_fraction` are foreground.
Samples draw_regions(const Candidates& candidates, std::int64_t count, double positive_fraction,
                     const StepInfo& step, std::size_t image);

/// The candidates that were drawn.
SampledRegions take(const Candidates& candidates, const Samples& drawn);

}  // namespace millrace
