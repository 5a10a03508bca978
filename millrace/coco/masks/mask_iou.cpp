#include "millrace/coco/masks/mask_iou.h"

#include <tbb/parallel_for.h>

namespace millrace::coco {

// Walks the runs once; each mask's odd runs are its inside.
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

std::vector<double> mask_iou(std::span<const Rle> detections, std::span<const Rle> truths,
                             std::span<const std::uint8_t> crowd) {
  std::vector<MaskExtent> extents;
  extents.reserve(truths.size());
  for (const Rle& truth : truths) extents.push_back(extent_of(truth));
  std::vector<double> result(detections.size() * truths.size());
  tbb::parallel_for(std::size_t{0}, detections.size(), [&](std::size_t d) {
    const MaskExtent extent = extent_of(detections[d]);
    for (std::size_t g = 0; g < truths.size(); ++g) {
      result[d * truths.size() + g] = iou(extent, extents[g], !crowd.empty() && crowd[g], 0,
                                          [&] { return shared_pixels(detections[d], truths[g]); });
    }
  });
  return result;
}

}  // namespace millrace::coco
