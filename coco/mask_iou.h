// How much two masks overlap, for callers that compare one mask with many. Pure; any thread.
#pragma once

#include "coco/masks.h"

namespace millrace::coco {

/// A mask with what each comparison needs of it. Borrows the mask.
struct MeasuredMask {
  explicit MeasuredMask(const Rle& rle);

  const Rle* mask;
  Box box;
  std::uint64_t pixels;
};

/// IoU as COCO computes it: 0 where boxes are apart, else -1 where sizes differ; the union with a crowd is the
/// detection's area. Values below `least` may come out as 0, which saves the count of shared pixels.
double iou(const MeasuredMask& detection, const MeasuredMask& truth, bool crowd, double least = 0);

}  // namespace millrace::coco
