// The parts of our Mask R-CNN, built like torchvision's in the golden scripts.
#pragma once

#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/maskrcnn/options.h"
#include "tests/parity/golden_runs.h"

namespace millrace::testing {

/// Returns the options that correspond to a recording's arguments.
MaskRcnnOptions options_of(const GoldenRun& golden);

/// A model with the weights of a recording.
struct GoldenModel {
  explicit GoldenModel(const GoldenRun& golden);

  /// Returns the features of `input` [N, 3, H, W]. `sizes` has the (height, width) of each image,
  /// [N, 2].
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

/// Returns the (height, width) of each image.
std::vector<ImageSize> image_sizes(const at::Tensor& sizes);

/// Converts photos [H, W, 3] to the network's input like torchvision's transform: normalises them,
/// then resizes them in float. `sizes` receives the (height, width) of each image, [N, 2].
at::Tensor torchvision_input(const std::vector<at::Tensor>& photos, const GoldenRun& golden,
                             at::Tensor& sizes);

/// Returns the recorded RPN output of an inference.
Rpn::Output recorded_rpn(const GoldenRun& golden);

/// Returns the proposals of each image, computed from the recorded RPN output.
std::vector<at::Tensor> proposals_of(const GoldenRun& golden, const MaskRcnnOptions& options,
                                     bool training);

/// Passes if the boxes [N, 4] are equal except for rounding and order. torchvision's last sort is
/// not stable, so boxes with equal scores may be in a different order.
::testing::AssertionResult same_boxes(const at::Tensor& actual, const at::Tensor& expected);

}  // namespace millrace::testing
