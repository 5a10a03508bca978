// HRFPN (Sun et al. 2019, HRNetV2p): upsamples all maps to the size of the finest, concatenates
// them, and averages them down to the levels of a pyramid, as MMDetection does.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

class HrFpn {
 public:
  /// `in`: channels of the input maps, fine to coarse. With an FpnTop of two extra levels the
  /// pyramid starts at half the sides of the finest map, since its output convolutions have stride
  /// 2.
  HrFpn(const Scope& scope, at::IntArrayRef in, std::int64_t channels, const NormOptions& norm,
        FpnTop top = FpnTop::pool);

  /// Takes four maps of strides 4, 8, 16, 32; returns P2..P6 or P3..P7, (N, channels, H / stride, W
  /// / stride). X is at::Tensor, or onnx::Value in a graph.
  template <class X>
  std::vector<X> operator()(const std::vector<X>& c, const NormMode& mode) const;

 private:
  ConvNorm reduction_;
  std::vector<ConvNorm> output_;
};

}  // namespace millrace
