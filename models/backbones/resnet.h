// ResNet (He et al. 2016) as a detector's backbone: C2..C5 with strides 4, 8, 16, 32. Parameters
// are named as in torchvision; those of the deep stem and of pooled shortcuts, which torchvision
// lacks, as in timm.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

/// A residual block. X is at::Tensor, or onnx::Value in a graph.
struct ResidualBlock {
  struct Shape {
    std::int64_t in, middle, out;
    std::int64_t stride = 1, groups = 1;
    bool bottleneck = true;     // 1x1, 3x3, 1x1; false = 3x3, 3x3
    bool stride_early = false;  // the stride is in the first 1x1
    bool pools = false;         // a strided shortcut averages before its 1x1
  };

  ResidualBlock() = default;
  /// `last_scale`: initial scale of the last norm.
  ResidualBlock(const Scope& scope, const Shape& shape, const NormOptions& norm,
                double last_scale = 1);

  std::vector<ConvNorm> convs;
  ConvNorm shortcut;
  bool projects = false, pools = false;
  template <class X>
  X operator()(const X& x, const NormMode& mode) const;
};

/// Blocks in sequence; the first may halve the sides.
using ResidualStage = std::vector<ResidualBlock>;
template <class X>
X through(const ResidualStage& stage, X x, const NormMode& mode) {
  for (const auto& block : stage) x = block(x, mode);
  return x;
}

/// The blocks of each stage of a published network.
struct ResNetLayout {
  std::array<std::int64_t, 4> blocks;
  bool bottleneck;
};
/// Requires a ResNet.
const ResNetLayout& layout_of(BackboneType type);

class ResNet {
 public:
  /// Freezes the first `options.freeze_at` stages: 1 = the stem, 2 = also C2, ... 5 = all.
  ResNet(const Scope& scope, const PyramidOptions& options);

  /// Takes (N, 3, H, W), H and W multiples of 32; returns C2..C5, or C2..C4 if the last stage runs
  /// on regions.
  template <class X>
  std::vector<X> operator()(const X& x, const NormMode& mode) const;

  /// Channels of C2..C5.
  const std::array<std::int64_t, 4>& channels() const { return channels_; }

  /// The stage from C4 to C5.
  const ResidualStage& last_stage() const { return stages_[3]; }

 private:
  std::vector<ConvNorm> stem_;
  std::array<ResidualStage, 4> stages_;
  std::array<std::int64_t, 4> channels_{};
  std::size_t count_;  // number of stages that produce maps
};

}  // namespace millrace
