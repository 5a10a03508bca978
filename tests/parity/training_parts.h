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

/// What is drawn for one image, indices ascending.
struct RecordedDraw {
  at::Tensor positive, negative;  // anchors
  SampledRegions regions;
};

/// Regions (R, 4), their labels (R) from 0 for the background, and the object that each is matched
/// to (R): foreground first.
SampledRegions sampled_regions(const at::Tensor& boxes, const at::Tensor& labels,
                               const at::Tensor& matched);

/// The five losses under torchvision's names.
std::map<std::string, at::Tensor> losses_of(const GoldenModel& model, const Features& features,
                                            const std::vector<Truth>& truths,
                                            const std::vector<RecordedDraw>& draws);

}  // namespace millrace::testing
