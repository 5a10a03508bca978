// ResNet (He et al. 2016) as a detector's backbone: C2..C5 with strides 4, 8, 16, 32. Names as in
// torchvision; those of the deep stem and the pooled shortcuts, which torchvision does not have, as
// in timm.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "millrace/models/layers/layers.h"

namespace millrace {

struct ResNetOptions {
  std::int64_t depth = 50;  // 18, 34, 50, 101
  std::int64_t width = 64;  // channels of the stem and of the first stage's 3x3 convolutions
  // Stages that are not trained: 1 the stem, 2 also C2, ... 5 all; 0 none
  std::int64_t freeze_at = 2;
  // Bottlenecks: stride in the first 1x1 (MSRA) or in the 3x3 (torchvision)
  bool stride_in_1x1 = false;
  bool deep_stem = false;  // three 3x3 convolutions instead of the 7x7 (ResNet-C, He et al. 2019)
  bool pool_shortcut = false;  // shortcuts that stride average first (with the above: ResNet-D)
  // Norms that end a residual branch start at 0 (ignored when frozen)
  bool zero_init_residual = false;
  NormOptions norm;
};

class ResNet {
 public:
  ResNet() = default;
  /// Throws std::invalid_argument where the depth is not known.
  ResNet(const Scope& scope, const ResNetOptions& options);

  /// (N, 3, H, W), H and W multiples of 32 -> C2..C5
  std::vector<at::Tensor> operator()(const at::Tensor& x, const NormPass& pass) const;

  /// Channels of C2..C5.
  std::array<std::int64_t, 4> channels() const { return channels_; }

  /// Name prefixes of the stages that `freeze_at` stops from training, below the ResNet's own
  /// scope.
  static std::vector<std::string> frozen_prefixes(std::int64_t freeze_at);

  void refresh();

 private:
  struct Block {
    std::vector<ConvNorm> convs;  // two (basic) or three (bottleneck)
    ConvNorm shortcut;
    bool projects = false, pools = false;
    at::Tensor operator()(const at::Tensor& x, const NormPass& pass) const;
  };

  std::vector<ConvNorm> stem_;
  std::array<std::vector<Block>, 4> stages_;
  std::array<std::int64_t, 4> channels_{};
};

}  // namespace millrace
