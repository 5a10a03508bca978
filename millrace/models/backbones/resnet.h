// ResNet (He et al. 2016) as a detector's backbone: C2..C5 with strides 4, 8, 16, 32. Names as in
// torchvision; for the deep stem and the pooled shortcuts, which it lacks, as in timm.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

class ResNet {
 public:
  /// The stages that `options.freeze_at` names are not trained: 1 the stem, 2 also C2, ... 5 all.
  ResNet(const Scope& scope, const PyramidOptions& options);

  /// (N, 3, H, W), H and W multiples of 32 -> C2..C5
  std::vector<at::Tensor> operator()(const at::Tensor& x, const NormPass& pass) const;

  std::vector<onnx::Value> operator()(const onnx::Value& x) const;

  /// Channels of C2..C5.
  const std::array<std::int64_t, 4>& channels() const { return channels_; }

 private:
  struct Block {
    std::vector<ConvNorm> convs;  // two (basic) or three (bottleneck)
    ConvNorm shortcut;
    bool projects = false, pools = false;
    at::Tensor operator()(const at::Tensor& x, const NormPass& pass) const;
    onnx::Value operator()(const onnx::Value& x) const;
  };

  std::vector<ConvNorm> stem_;
  std::array<std::vector<Block>, 4> stages_;
  std::array<std::int64_t, 4> channels_{};
};

}  // namespace millrace
