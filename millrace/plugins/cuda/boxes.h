// IoU, matching and NMS of boxes on the GPU. What is MILLRACE_HOST_DEVICE follows torchvision's
// order of operations, as millrace/models/ops does; compiled without fused multiply-adds it gives
// the CPU's bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

struct BoxValues {
  float x1, y1, x2, y2;
};

MILLRACE_HOST_DEVICE inline BoxValues box_at(const float* boxes, std::int64_t i) {
  return {boxes[i * 4], boxes[i * 4 + 1], boxes[i * 4 + 2], boxes[i * 4 + 3]};
}

/// Zero where both boxes are empty. `offset` is added to sides (1: the legacy convention).
MILLRACE_HOST_DEVICE inline float iou(const BoxValues& a, const BoxValues& b, float offset) {
  const float left = b.x1 > a.x1 ? b.x1 : a.x1, top = b.y1 > a.y1 ? b.y1 : a.y1;
  const float right = b.x2 < a.x2 ? b.x2 : a.x2, bottom = b.y2 < a.y2 ? b.y2 : a.y2;
  const float width = right - left + offset, height = bottom - top + offset;
  const float common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
  const float area_a = (a.x2 - a.x1 + offset) * (a.y2 - a.y1 + offset);
  const float area_b = (b.x2 - b.x1 + offset) * (b.y2 - b.y1 + offset);
  const float ratio = common / (area_a + area_b - common);
  return ratio > 0 ? ratio : 0;
}

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

/// Bytes of scratch memory for NMS of groups of at most `most` boxes, `count` boxes in all.
std::size_t nms_scratch_bytes(std::int64_t count, std::int64_t most);

/// boxes (count, 4): group after group, best first within each; `begins` (groups + 1) says where a
/// group begins, in device memory; no group has more than `most` boxes. Boxes with `valid` 0
/// neither stay nor suppress. keep[i] is 1 where no better box of the group that stays overlaps it
/// by more than `threshold`. The same bits as the CPU's.
void nms(const float* boxes, const std::uint8_t* valid, const std::int64_t* begins,
         std::int64_t groups, std::int64_t count, std::int64_t most, float threshold, float offset,
         void* scratch, std::uint8_t* keep, Stream stream);

}  // namespace millrace::cuda
