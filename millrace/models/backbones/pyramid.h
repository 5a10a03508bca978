// From a batch's bytes to a feature pyramid: pixels, residual network and FPN, as configured.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/layers/normalize.h"

namespace millrace {

class Pyramid {
 public:
  /// Declares its tensors under `scope` (body and fpn) and freezes the stages that the options
  /// name.
  Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top);

  /// P2..P6, or P3..P7 where two levels stand on top: (N, channels, height / stride, width /
  /// stride) each, of the batch's sides or those of `padded` where it is larger.
  std::vector<at::Tensor> operator()(const Batch& batch, const NormPass& pass,
                                     cv::Size padded = {}) const;

  void refresh();

 private:
  PixelOptions pixels_;
  std::size_t first_;  // the first of C2..C5 that the FPN takes
  at::Device device_;
  ResNet body_;
  Fpn fpn_;
};

}  // namespace millrace
