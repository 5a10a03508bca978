#include "millrace/models/maskrcnn/region_samples.h"

#include <ATen/ops/cat.h>

namespace millrace {
namespace {

constexpr std::uint64_t kRegionStream = 2;  // of the step's random numbers

}  // namespace

Candidates match_regions(const at::Tensor& boxes, const Truth& truth, double iou, double offset) {
  return {boxes, match(truth.boxes, boxes, {iou, iou, /*low_quality=*/false, offset})};
}

Samples draw_regions(const Candidates& candidates, std::int64_t count, double positive_fraction,
                     const StepInfo& step, std::size_t image) {
  auto rng = step.rng(kRegionStream, image);
  return sample(candidates.matches.label, count, positive_fraction, rng);
}

SampledRegions take(const Candidates& candidates, const Samples& drawn) {
  return {candidates.boxes.index_select(0, at::cat({drawn.positive, drawn.negative})),
          candidates.matches.truth.index_select(0, drawn.positive), drawn.positive.size(0)};
}

}  // namespace millrace
