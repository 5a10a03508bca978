// Feature pyramid (Lin et al. 2017) and the coarser levels on top of it. Names as in torchvision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/layers/layers.h"

namespace millrace {

/// What the coarser levels are made of.
enum class FpnTop {
  pool,  // one level: P5 subsampled
  p5,    // two levels: 3x3 convolutions of stride 2 from P5 on (torchvision's RetinaNet)
  c5,    // the same from C5 on (Lin et al. 2017b, detectron2)
};

class Fpn {
 public:
  Fpn() = default;
  /// `in` are the channels of the maps that it is given, fine to coarse.
  Fpn(const Scope& scope, at::IntArrayRef in, std::int64_t channels, const NormOptions& norm,
      FpnTop top = FpnTop::pool);

  /// C2..C5 (or fewer, up to C5) -> a level for each, then the coarser ones: (N, channels, H /
  /// stride, W / stride)
  std::vector<at::Tensor> operator()(at::TensorList c, const NormPass& pass) const;

  void refresh();

 private:
  FpnTop top_ = FpnTop::pool;
  std::vector<ConvNorm> lateral_, output_;
  Conv2d p6_, p7_;
};

}  // namespace millrace
