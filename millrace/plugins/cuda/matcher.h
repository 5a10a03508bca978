// Which ground truth each box belongs to, on the GPU: IoU and matching in one, without the table of
// all pairs.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/boxes_math.h"

namespace millrace::cuda {

/// Thresholds of millrace/models/ops/matcher.h.
struct MatchRules {
  float low, high, offset;
  bool low_quality;
};

/// The match of one box: the first truth of the highest IoU, and 1 foreground, 0 background, -1
/// neither. `highest` (G): the best IoU that each truth has with any box; used where low_quality
/// holds.
MILLRACE_HOST_DEVICE inline void match_box(const float* truths, std::int64_t count,
                                           const BoxValues& box, const float* highest,
                                           const MatchRules& rules, std::int64_t& truth,
                                           std::int8_t& label) {
  float best = 0;
  bool is_best = false;
  truth = 0;
  for (std::int64_t g = 0; g < count; ++g) {
    const float value = iou(box_at(truths, g), box, rules.offset);
    if (g == 0 || value > best) best = value, truth = g;
    is_best = is_best || (rules.low_quality && value > 0 && value == highest[g]);
  }
  label = static_cast<std::int8_t>(count == 0                      ? 0
                                   : is_best || best >= rules.high ? 1
                                   : best < rules.low              ? 0
                                                                   : -1);
}

/// truths (G, 4), boxes (B, 4) -> truth (B), label (B). `highest` is scratch memory of G floats.
void match(const float* truths, std::int64_t truth_count, const float* boxes,
           std::int64_t box_count, const MatchRules& rules, float* highest, std::int64_t* truth,
           std::int8_t* label, Stream stream);

}  // namespace millrace::cuda
