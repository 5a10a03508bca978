// Box arithmetic of one pair or one anchor, in torchvision's order of operations
// (millrace/models/ops/boxes.h); compiled without fused multiply-adds it gives the CPU's bits.
#pragma once

#include <cmath>
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

/// R-CNN's deltas (BoxCoder of millrace/models/ops/boxes.h).
struct BoxDecoding {
  float weights[4];
  float max_log_scale, offset;
};

MILLRACE_HOST_DEVICE inline float shorter(float value, float most) {
  return value > most ? most : value;
}

/// The box that `deltas` (dx dy dw dh) make of `from`.
MILLRACE_HOST_DEVICE inline BoxValues decode(const BoxValues& from, const float* deltas,
                                             const BoxDecoding& coding) {
  const float width = from.x2 - from.x1 + coding.offset, height = from.y2 - from.y1 + coding.offset;
  const float x = deltas[0] / coding.weights[0] * width + (from.x1 + 0.5F * width);
  const float y = deltas[1] / coding.weights[1] * height + (from.y1 + 0.5F * height);
  const float half_width =
      0.5F * std::exp(shorter(deltas[2] / coding.weights[2], coding.max_log_scale)) * width;
  const float half_height =
      0.5F * std::exp(shorter(deltas[3] / coding.weights[3], coding.max_log_scale)) * height;
  return {x - half_width, y - half_height, x + half_width - coding.offset,
          y + half_height - coding.offset};
}

/// Cut to an image of height x width pixels. What is not a number stays so.
MILLRACE_HOST_DEVICE inline BoxValues clip(const BoxValues& box, float height, float width) {
  const auto inside = [](float value, float most) {
    return value < 0 ? 0 : value > most ? most : value;
  };
  return {inside(box.x1, width), inside(box.y1, height), inside(box.x2, width),
          inside(box.y2, height)};
}

/// Whether a proposal may stay: finite, with sides of `min_side` or, where that is 0, more than
/// none.
MILLRACE_HOST_DEVICE inline bool is_proposal(const BoxValues& box, float score, float min_side) {
  const float width = box.x2 - box.x1, height = box.y2 - box.y1;
  const float any = box.x1 + box.y1 + box.x2 + box.y2 + score;
  if (!(any - any == 0)) return false;
  return min_side > 0 ? width >= min_side && height >= min_side : width > 0 && height > 0;
}

}  // namespace millrace::cuda
