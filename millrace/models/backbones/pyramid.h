// From a batch's bytes to a feature pyramid: pixels, residual network and FPN, as configured.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/layers/pixels.h"

namespace millrace {

class Pyramid {
 public:
  /// Declares its tensors under `scope`: body and fpn.
  Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top);

  /// P2..P6, or P3..P7 where two levels stand on top: (N, channels, height / stride, width /
  /// stride) each, of the batch's sides or those of `padded` where it is larger.
  std::vector<at::Tensor> operator()(const Batch& batch, const NormPass& pass,
                                     cv::Size padded = {}) const;

  /// The same of pixels (N, H, W, 3) uint8 and the images' `sizes` (N, 2), height and width;
  /// `padded` is a list of height and width, no smaller than the pixels'.
  std::vector<onnx::Value> operator()(const onnx::Value& pixels, const onnx::Value& sizes,
                                      const onnx::Value& padded) const;

 private:
  PyramidOptions options_;
  std::size_t first_;  // the first of C2..C5 that the FPN takes
  at::Device device_;
  ResNet body_;
  Fpn fpn_;
};

}  // namespace millrace
