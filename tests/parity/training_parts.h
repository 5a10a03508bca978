// One training step of torchvision's, recorded: its ground truth and its draws, as our losses take
// them.
#pragma once

#include <map>
#include <string>

#include "tests/parity/golden_model.h"

namespace millrace::testing {

/// Ground truth that owns its masks. The truths borrow from it.
struct RecordedTruth {
  /// boxes (G, 4) and masks (G, h, w) in the network's pixels, labels (G) from 1.
  RecordedTruth(const at::Tensor& boxes, const at::Tensor& labels, const at::Tensor& masks);

  Truth borrowed() const;

  at::Tensor boxes, labels;
  std::vector<coco::Segmentation> shapes;
  double height, width;
};

/// Regions of one image, the foreground first.
struct RecordedRegions {
  at::Tensor boxes;             // (R, 4)
  at::Tensor truth;             // (F) int64: the image's object of each in the foreground
  std::int64_t foreground = 0;  // F
};

/// What is drawn for one image, indices ascending.
struct RecordedDraw {
  at::Tensor positive, negative;  // anchors
  RecordedRegions regions;
};

/// Regions (R, 4), their labels (R) from 0 for the background, and the object that each is matched
/// to (R): foreground first.
RecordedRegions sampled_regions(const at::Tensor& boxes, const at::Tensor& labels,
                                const at::Tensor& matched);

/// Those of all images, as the losses take them. Indices are of the truths' pack.
SampledRegions together(const std::vector<RecordedRegions>& regions,
                        const std::vector<Truth>& truths);

/// The five losses under torchvision's names.
std::map<std::string, at::Tensor> losses_of(const GoldenModel& model, const Features& features,
                                            const std::vector<Truth>& truths,
                                            const std::vector<RecordedDraw>& draws);

}  // namespace millrace::testing
