// HRNet (Wang et al. 2019) as a detector's backbone: branches of strides 4, 8, 16, 32 side by side,
// which exchange what they know after every module. Names as in timm and MMDetection.
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

/// Blocks of each branch, then sums over all branches. X: at::Tensor, or onnx::Value in a graph.
class HrModule {
 public:
  HrModule(const Scope& scope, at::IntArrayRef channels, const NormOptions& norm);

  template <class X>
  std::vector<X> operator()(std::vector<X> x, const NormPass& pass) const;

 private:
  std::vector<ResidualStage> branches_;
  /// From branch [to][from]: up through one 1x1, down through strided 3x3, with a ReLU between;
  /// none from a branch to itself.
  std::vector<std::vector<std::vector<ConvNorm>>> ways_;
};

class HrNet {
 public:
  /// The stages that `options.freeze_at` names are not trained: 1 the stem, 2 also layer1, 3 also
  /// stage2, ... 5 all.
  HrNet(const Scope& scope, const PyramidOptions& options);

  /// (N, 3, H, W), H and W multiples of 32 -> the four branches' maps, fine to coarse
  template <class X>
  std::vector<X> operator()(const X& x, const NormPass& pass) const;

  /// Channels of the four maps: 18, 36, 72, 144 of hrnet_w18.
  const std::array<std::int64_t, 4>& channels() const { return channels_; }

 private:
  struct Stage {
    std::vector<std::optional<ConvNorm>> entries;  // of each branch; a new one's from the coarsest
    std::vector<HrModule> modules;
  };

  std::array<std::int64_t, 4> channels_;
  std::vector<ConvNorm> stem_;
  ResidualStage layer1_;
  std::vector<Stage> stages_;
};

}  // namespace millrace
