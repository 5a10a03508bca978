// HRFPN (Sun et al. 2019, HRNetV2p): all maps at the finest one's sides, joined, and averaged down
// to the levels of a pyramid. As in MMDetection.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

class HrFpn {
 public:
  /// `in`: the channels of the input maps, fine to coarse. With two levels on top the pyramid
  /// begins at half the sides of the finest map: its convolutions stride.
  HrFpn(const Scope& scope, at::IntArrayRef in, std::int64_t channels, const NormOptions& norm,
        FpnTop top = FpnTop::pool);

  /// Four maps of strides 4, 8, 16, 32 -> P2..P6, or P3..P7: (N, channels, H / stride, W / stride).
  /// X: at::Tensor, or onnx::Value in a graph.
  template <class X>
  std::vector<X> operator()(const std::vector<X>& c, const NormPass& pass) const;

 private:
  ConvNorm reduction_;
  std::vector<ConvNorm> output_;
};

}  // namespace millrace
