// IoU, matching, decoding and NMS of boxes on the GPU. MILLRACE_HOST_DEVICE functions follow
// torchvision's order of operations, like millrace/models/ops. Compiled without fused
// multiply-adds, they give the same bits as the CPU, except for the exponential in decode.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

struct BoxValues {
  float x1, y1, x2, y2;
};

MILLRACE_HOST_DEVICE inline BoxValues box_at(const float* boxes, std::int64_t i) {
  return {boxes[i * 4], boxes[i * 4 + 1], boxes[i * 4 + 2], boxes[i * 4 + 3]};
}

/// Returns the IoU of two boxes; 0 if both are empty. `offset` is added to widths and heights (1 =
/// the legacy convention).
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

/// Thresholds as in millrace/models/ops/matcher.h.
struct MatchRules {
  float bg_iou_thresh, fg_iou_thresh, offset;
  bool low_quality;
};

/// The ground truth of N images: boxes (G, 4), image after image. `begins` (N + 1): index of each
/// image's first box.
struct TruthTable {
  const float* boxes;
  const std::int64_t* begins;
  std::int64_t count, images;  // G, N

  /// Returns the image of ground truth box g: the last image that begins at or before g and is not
  /// empty.
  MILLRACE_HOST_DEVICE std::int64_t image_of(std::int64_t g) const {
    std::int64_t low = 0, high = images;  // invariant: begins[low] <= g < begins[high]
    while (high - low > 1) {
      const auto middle = (low + high) / 2;
      (begins[middle] <= g ? low : high) = middle;
    }
    return low;
  }
};

/// Boxes (N, P, 4), or (P, 4) if all images share them.
struct BoxTable {
  const float* boxes;
  std::int64_t count;  // P
  bool shared;

  MILLRACE_HOST_DEVICE BoxValues at(std::int64_t image, std::int64_t i) const {
    return box_at(boxes, shared ? i : image * count + i);
  }
};

/// Matches box `i` of the N P boxes. `truth`: the first ground truth box with the highest IoU.
/// `label`: 1 foreground, 0 background, -1 neither. `highest` (G): the best IoU of each ground
/// truth box with any box, read only if low_quality is set.
MILLRACE_HOST_DEVICE inline void match_one(const TruthTable& truths, const BoxTable& boxes,
                                           const float* highest, const MatchRules& rules,
                                           std::int64_t i, std::int64_t* truth,
                                           std::int8_t* label) {
  const auto image = i / boxes.count, begin = truths.begins[image], end = truths.begins[image + 1];
  const auto box = boxes.at(image, i % boxes.count);
  std::int64_t own = begin;
  float best = 0;
  bool is_best = false;
  for (auto g = begin; g < end; ++g) {
    const float value = iou(box_at(truths.boxes, g), box, rules.offset);
    if (value > best) best = value, own = g;
    is_best = is_best || (rules.low_quality && value > 0 && value == highest[g]);
  }
  truth[i] = begin < end ? own : 0;
  label[i] = static_cast<std::int8_t>(begin == end                             ? 0
                                      : is_best || best >= rules.fg_iou_thresh ? 1
                                      : best < rules.bg_iou_thresh             ? 0
                                                                               : -1);
}

/// Writes truth (N, P) and label (N, P). `highest` is scratch memory for G floats.
void match(const TruthTable& truths, const BoxTable& boxes, const MatchRules& rules, float* highest,
           std::int64_t* truth, std::int8_t* label, Stream stream);

/// Parameters of R-CNN's box deltas, as in BoxCoder of millrace/models/ops/boxes.h.
struct BoxDecoding {
  float weights[4];
  float max_log_scale, offset;
};

MILLRACE_HOST_DEVICE inline float at_most(float value, float most) {
  return value > most ? most : value;
}

/// Applies `deltas` (dx, dy, dw, dh) to the box `from`.
MILLRACE_HOST_DEVICE inline BoxValues decode(const BoxValues& from, const float* deltas,
                                             const BoxDecoding& coding) {
  const float width = from.x2 - from.x1 + coding.offset, height = from.y2 - from.y1 + coding.offset;
  const float x = deltas[0] / coding.weights[0] * width + (from.x1 + 0.5F * width);
  const float y = deltas[1] / coding.weights[1] * height + (from.y1 + 0.5F * height);
  const float half_width =
      0.5F * std::exp(at_most(deltas[2] / coding.weights[2], coding.max_log_scale)) * width;
  const float half_height =
      0.5F * std::exp(at_most(deltas[3] / coding.weights[3], coding.max_log_scale)) * height;
  return {x - half_width, y - half_height, x + half_width - coding.offset,
          y + half_height - coding.offset};
}

/// Clips a box to an image of height x width pixels. NaN stays NaN.
MILLRACE_HOST_DEVICE inline BoxValues clip(const BoxValues& box, float height, float width) {
  const auto inside = [](float value, float most) {
    return value < 0 ? 0 : value > most ? most : value;
  };
  return {inside(box.x1, width), inside(box.y1, height), inside(box.x2, width),
          inside(box.y2, height)};
}

/// Returns an integer that is ordered like the values, with values that are not finite below all
/// others. If values are equal, the lower index has the greater key. As in
/// millrace/models/ops/top_k.cpp, but signed.
MILLRACE_HOST_DEVICE inline std::int64_t key_of(float value, std::uint32_t index) {
  const float finite = value - value == 0 ? value + 0.0F : -INFINITY;  // -0 becomes +0
  std::uint32_t bits;
  memcpy(&bits, &finite, sizeof bits);
  const std::uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000U;
  const std::uint64_t key = std::uint64_t{ordered} << 32 | static_cast<std::uint32_t>(~index);
  return static_cast<std::int64_t>(key ^ std::uint64_t{1} << 63);
}

MILLRACE_HOST_DEVICE inline std::int64_t index_of(std::int64_t key) {
  return static_cast<std::uint32_t>(~static_cast<std::uint64_t>(key));
}

/// Returns the value of a key; -infinity if the value was not finite.
MILLRACE_HOST_DEVICE inline float value_of(std::int64_t key) {
  const auto ordered =
      static_cast<std::uint32_t>((static_cast<std::uint64_t>(key) ^ std::uint64_t{1} << 63) >> 32);
  const std::uint32_t bits = ordered >> 31 ? ordered & 0x7fffffffU : ~ordered;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// A number below every valid key.
constexpr std::int64_t kNoKey = INT64_MIN;

/// Writes the keys (rows, columns) of `values` (rows, columns) and their columns; kNoKey where
/// `keep` is 0. nullptr `keep` = keep all.
void make_keys(const float* values, const std::uint8_t* keep, std::int64_t rows,
               std::int64_t columns, std::int64_t* keys, Stream stream);

/// Splits keys (count) into values (count) and index (count).
void split_keys(const std::int64_t* keys, std::int64_t count, float* values, std::int64_t* index,
                Stream stream);

/// Gathers boxes (rows, columns, 4) in the order of keys (rows, kept) into `gathered` (rows, kept,
/// 4); the boxes from the first kNoKey on are zeros. Writes the number of valid keys of each row to
/// counts (rows).
void gather_boxes(const float* boxes, const std::int64_t* keys, std::int64_t rows,
                  std::int64_t columns, std::int64_t kept, float* gathered, std::int64_t* counts,
                  Stream stream);

/// Returns true if box and score are finite and both sides are at least `min_side`, or above 0 if
/// `min_side` is 0.
MILLRACE_HOST_DEVICE inline bool is_proposal(const BoxValues& box, float score, float min_side) {
  const float width = box.x2 - box.x1, height = box.y2 - box.y1;
  const float any = box.x1 + box.y1 + box.x2 + box.y2 + score;
  if (!(any - any == 0)) return false;
  return min_side > 0 ? width >= min_side && height >= min_side : width > 0 && height > 0;
}

/// The top `count` anchors, `per_image` from each image: anchors (A, 4), deltas (N, A, 4), scores
/// (count), sizes (N, 2) as height and width, index (count) into the A anchors.
struct ChosenAnchors {
  const float* anchors;
  const float* deltas;
  const float* scores;
  const float* sizes;
  const std::int64_t* index;
  std::int64_t count, per_image, anchor_count;
};

/// Decodes and clips chosen anchor `i` into boxes[i], and writes is_proposal() of it to valid[i].
MILLRACE_HOST_DEVICE inline void decode_chosen(const ChosenAnchors& chosen,
                                               const BoxDecoding& coding, float min_side,
                                               std::int64_t i, float* boxes, std::uint8_t* valid) {
  const auto anchor = chosen.index[i], image = i / chosen.per_image;
  const auto box = clip(decode(box_at(chosen.anchors, anchor),
                               chosen.deltas + (image * chosen.anchor_count + anchor) * 4, coding),
                        chosen.sizes[image * 2], chosen.sizes[image * 2 + 1]);
  boxes[i * 4] = box.x1, boxes[i * 4 + 1] = box.y1;
  boxes[i * 4 + 2] = box.x2, boxes[i * 4 + 3] = box.y2;
  valid[i] = is_proposal(box, chosen.scores[i], min_side);
}

/// Decodes all chosen anchors into boxes (count, 4) and valid (count).
void decode_chosen(const ChosenAnchors& chosen, const BoxDecoding& coding, float min_side,
                   float* boxes, std::uint8_t* valid, Stream stream);

/// Returns the scratch memory in bytes that NMS needs for `count` boxes in groups of up to `most`
/// boxes.
std::size_t nms_scratch_bytes(std::int64_t count, std::int64_t most);

/// Runs NMS within each group and writes 1 to keep[i] if no better kept box of its group overlaps
/// box i by more than `threshold`. boxes (count, 4) are stored group after group, best first;
/// `begins` (groups + 1), in device memory, has the index of each group's first box; a group has up
/// to `most` boxes. Boxes with `valid` 0 are neither kept nor suppress others. The result has the
/// same bits as the CPU's. Throws std::invalid_argument for groups of more than 262,144 boxes.
void nms(const float* boxes, const std::uint8_t* valid, const std::int64_t* begins,
         std::int64_t groups, std::int64_t count, std::int64_t most, float threshold, float offset,
         void* scratch, std::uint8_t* keep, Stream stream);

}  // namespace millrace::cuda
