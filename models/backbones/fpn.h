// Feature pyramid network (Lin et al. 2017) and the coarser levels on top of it. Parameters are
// named as in torchvision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

class Fpn {
 public:
  /// `in`: channels of the input maps, fine to coarse.
  Fpn(const Scope& scope, at::IntArrayRef in, std::int64_t channels, const NormOptions& norm,
      FpnTop top = FpnTop::pool);

  /// Takes C2..C5, or fewer up to C5; returns one level for each and then the coarser ones, (N,
  /// channels, H / stride, W / stride). X is at::Tensor, or onnx::Value in a graph.
  template <class X>
  std::vector<X> operator()(const std::vector<X>& c, const NormMode& mode) const;

 private:
  FpnTop top_ = FpnTop::pool;
  std::vector<ConvNorm> lateral_, output_;
  Conv2d p6_, p7_;
};

}  // namespace millrace
