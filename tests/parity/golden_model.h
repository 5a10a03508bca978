// Our Mask R-CNN, part by part, as the goldens' scripts have built torchvision's.
#pragma once

#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/maskrcnn/options.h"
#include "tests/parity/golden_runs.h"

namespace millrace::testing {

/// The options that a recording's arguments stand for.
MaskRcnnOptions options_of(const GoldenRun& golden);

/// A model with the weights that a recording was made with.
struct GoldenModel {
  explicit GoldenModel(const GoldenRun& golden);

  /// The results for an input (N, 3, H, W) that holds images of these (height, width), (N, 2).
  Features features(const at::Tensor& input, const at::Tensor& sizes, bool training = false) const;

  MaskRcnnOptions options;
  Parameters parameters;
  Scope root{parameters, /*seed=*/1};
  std::int64_t classes;
  ResNet body;
  Fpn fpn;
  Rpn rpn;
  BoxStages box_stages;
  MaskHead mask_head;
};

/// (height, width) of each image.
std::vector<ImageSize> image_sizes(const at::Tensor& sizes);

/// Photos (H, W, 3) bytes as torchvision's transform makes the network's input of them: normalised,
/// then resized in float. `sizes` receives the (height, width) of each, (N, 2).
at::Tensor torchvision_input(const std::vector<at::Tensor>& photos, const GoldenRun& golden,
                             at::Tensor& sizes);

/// What the RPN has put out, as recorded for inference.
Rpn::Output recorded_rpn(const GoldenRun& golden);

/// The proposals of each image from what an inference has recorded of the RPN.
std::vector<at::Tensor> proposals_of(const GoldenRun& golden, const MaskRcnnOptions& options,
                                     bool training);

/// The same boxes (N, 4) except for rounding, in any order: torchvision's last sort is not stable,
/// so boxes of equal scores may stand in another one.
::testing::AssertionResult same_boxes(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace millrace::testing
