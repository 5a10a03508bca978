// From the RPN's outputs to boxes, on the GPU: what lies between the choice of the best logits and
// NMS.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/boxes_math.h"

namespace millrace::cuda {

/// For each of `count` chosen anchors: boxes[i] = clip(decode(anchors[index[i]],
/// deltas[image[i]][index[i]])), and valid[i] whether it may stay. anchors (A, 4), deltas (N, A,
/// 4), scores (count), sizes (N, 2): height and width.
struct ChosenAnchors {
  const float* anchors;
  const float* deltas;
  const float* scores;
  const float* sizes;
  const std::int64_t* index;
  const std::int64_t* image;
  std::int64_t count, anchor_count;
};

/// The work of one element.
MILLRACE_HOST_DEVICE inline void decode_chosen(const ChosenAnchors& chosen,
                                               const BoxDecoding& coding, float min_side,
                                               std::int64_t i, float* boxes, std::uint8_t* valid) {
  const auto anchor = chosen.index[i], image = chosen.image[i];
  const auto box = clip(decode(box_at(chosen.anchors, anchor),
                               chosen.deltas + (image * chosen.anchor_count + anchor) * 4, coding),
                        chosen.sizes[image * 2], chosen.sizes[image * 2 + 1]);
  boxes[i * 4] = box.x1, boxes[i * 4 + 1] = box.y1;
  boxes[i * 4 + 2] = box.x2, boxes[i * 4 + 3] = box.y2;
  valid[i] = is_proposal(box, chosen.scores[i], min_side);
}

void decode_chosen(const ChosenAnchors& chosen, const BoxDecoding& coding, float min_side,
                   float* boxes, std::uint8_t* valid, Stream stream);

}  // namespace millrace::cuda
