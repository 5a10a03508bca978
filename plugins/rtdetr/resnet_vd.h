// ResNet-vd (He et al. 2019, "Bag of tricks"): a stem of three 3x3 convolutions, and shortcuts with
// average pooling before the projection. Tensors have the names of the package transformers.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/backbones/resnet.h>
#include <array>
#include <cstdint>
#include <vector>

#include "options.h"

namespace millrace::rtdetr {

class ResNetVd {
 public:
  /// Stages up to `options.freeze_at` are not trained: 1 = the stem, 2 = also C2, ..., 5 = all.
  ResNetVd(const Scope& scope, const BackboneOptions& options, double norm_eps);

  /// Computes C3..C5, with strides 8, 16 and 32, of (N, 3, H, W); H and W are multiples of 32. X is
  /// at::Tensor, or onnx::Value in a graph.
  template <class X>
  std::vector<X> operator()(const X& x, const NormMode& mode) const;

  /// Channels of C3..C5.
  const std::array<std::int64_t, 3>& channels() const { return channels_; }

 private:
  std::vector<ConvNorm> stem_;
  std::array<ResidualStage, 4> stages_;
  std::array<std::int64_t, 3> channels_{};
};

}  // namespace millrace::rtdetr
