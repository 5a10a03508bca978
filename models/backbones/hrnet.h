// HRNet (Wang et al. 2019) as a detector's backbone: parallel branches of strides 4, 8, 16, 32 that
// are fused after every module. Parameters are named as in timm and MMDetection.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "millrace/models/backbones/pyramid_options.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/layers/layers.h"

namespace millrace {

/// Blocks of each branch, then fusion by sums over all branches. X is at::Tensor, or onnx::Value in
/// a graph.
class HrModule {
 public:
  HrModule(const Scope& scope, at::IntArrayRef channels, const NormOptions& norm);

  template <class X>
  std::vector<X> operator()(std::vector<X> x, const NormMode& mode) const;

 private:
  std::vector<ResidualStage> branches_;
  /// [to][from]: convolutions between branches, with a ReLU between them: a 1x1 to a finer branch,
  /// strided 3x3 to a coarser one; empty from a branch to itself.
  std::vector<std::vector<std::vector<ConvNorm>>> ways_;
};

class HrNet {
 public:
  /// Freezes the first `options.freeze_at` stages: 1 = the stem, 2 = also layer1, 3 = also stage2,
  /// ... 5 = all.
  HrNet(const Scope& scope, const PyramidOptions& options);

  /// Takes (N, 3, H, W), H and W multiples of 32; returns the four branches' maps, fine to coarse.
  template <class X>
  std::vector<X> operator()(const X& x, const NormMode& mode) const;

  /// Channels of the four maps, e.g. 18, 36, 72, 144 for hrnet_w18.
  const std::array<std::int64_t, 4>& channels() const { return channels_; }

 private:
  struct Stage {
    std::vector<std::optional<ConvNorm>> entries;  // one per branch; a new one follows the coarsest
    std::vector<HrModule> modules;
  };

  std::array<std::int64_t, 4> channels_;
  std::vector<ConvNorm> stem_;
  ResidualStage layer1_;
  std::vector<Stage> stages_;
};

}  // namespace millrace
