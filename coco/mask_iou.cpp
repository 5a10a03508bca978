#include "coco/mask_iou.h"

#include <algorithm>

namespace millrace::coco {
namespace {

/// Pixels inside both. Walks the runs once; each mask's odd runs are its inside.
std::uint64_t shared_pixels(const Rle& a, const Rle& b) {
  std::uint64_t shared = 0;
  std::uint32_t begin_a = 0, end_a = 0, begin_b = 0, end_b = 0;
  const std::size_t runs_a = a.counts.size() / 2 * 2, runs_b = b.counts.size() / 2 * 2;
  for (std::size_t i = 0, j = 0;;) {
    if (end_a <= end_b) {
      if (i == runs_a) break;
      begin_a = end_a + a.counts[i];
      end_a = begin_a + a.counts[i + 1];
      i += 2;
    } else {
      if (j == runs_b) break;
      begin_b = end_b + b.counts[j];
      end_b = begin_b + b.counts[j + 1];
      j += 2;
    }
    const std::uint32_t begin = std::max(begin_a, begin_b), end = std::min(end_a, end_b);
    if (begin < end) shared += end - begin;
  }
  return shared;
}

}  // namespace

MeasuredMask::MeasuredMask(const Rle& rle)
    : mask(&rle), box(bounding_box(rle)), pixels(area(rle)) {}

double iou(const MeasuredMask& detection, const MeasuredMask& truth, bool crowd, double least) {
  const Box &d = detection.box, &t = truth.box;
  const float width = std::min(d.x2, t.x2) - std::max(d.x1, t.x1);
  const float height = std::min(d.y2, t.y2) - std::max(d.y1, t.y1);
  if (width <= 0 || height <= 0) return 0;
  if (detection.mask->height != truth.mask->height || detection.mask->width != truth.mask->width) {
    return -1;
  }
  const auto quotient = [&](std::uint64_t shared) {
    const std::uint64_t all = crowd ? detection.pixels : detection.pixels + truth.pixels - shared;
    return static_cast<double>(shared) / static_cast<double>(all);
  };
  const auto window = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  const std::uint64_t most = std::min({window, detection.pixels, truth.pixels});
  if (quotient(most) < least) return 0;
  const std::uint64_t shared = shared_pixels(*detection.mask, *truth.mask);
  return shared == 0 ? 0 : quotient(shared);
}

std::vector<double> mask_iou(std::span<const Rle> detections, std::span<const Rle> truths,
                             std::span<const std::uint8_t> crowd) {
  const std::vector<MeasuredMask> measured(truths.begin(), truths.end());
  std::vector<double> result;
  result.reserve(detections.size() * truths.size());
  for (const Rle& detection : detections) {
    const MeasuredMask d(detection);
    for (std::size_t g = 0; g < truths.size(); ++g) {
      result.push_back(iou(d, measured[g], !crowd.empty() && crowd[g]));
    }
  }
  return result;
}

}  // namespace millrace::coco
