// The ground truth and random draws of a recorded torchvision training step, as arguments for our
// losses.
#pragma once

#include <map>
#include <string>

#include "tests/parity/golden_model.h"

namespace millrace::testing {

/// Ground truth that owns its masks. The result of borrowed() points to them.
struct RecordedTruth {
  /// boxes [G, 4] and masks [G, h, w] in network pixels, labels [G] from 1.
  RecordedTruth(const at::Tensor& boxes, const at::Tensor& labels, const at::Tensor& masks);

  Truth borrowed() const;

  at::Tensor boxes, labels;
  std::vector<coco::Segmentation> shapes;
  double height, width;
};

/// Regions of one image, the foreground first.
struct RecordedRegions {
  at::Tensor boxes;             // [R, 4]
  at::Tensor truth;             // [F] int64: index of the object of each foreground region
  std::int64_t foreground = 0;  // F
};

/// The random draws for one image; indices are in ascending order.
struct RecordedDraw {
  at::Tensor positive, negative;  // anchors
  RecordedRegions regions;
};

/// Returns regions, foreground first, with boxes [R, 4], labels [R] (0 = background) and the
/// indices of their matched objects [R].
RecordedRegions sampled_regions(const at::Tensor& boxes, const at::Tensor& labels,
                                const at::Tensor& matched);

/// Joins the regions of all images for the losses. Indices refer to the truths' pack.
SampledRegions together(const std::vector<RecordedRegions>& regions,
                        const std::vector<Truth>& truths);

/// Returns the five losses under torchvision's names.
std::map<std::string, at::Tensor> losses_of(const GoldenModel& model, const Features& features,
                                            const std::vector<Truth>& truths,
                                            const std::vector<RecordedDraw>& draws);

}  // namespace millrace::testing
