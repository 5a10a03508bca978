// RT-DETR's encoder: attention within the coarsest map (AIFI), then convolutions across the maps,
// coarse to fine and back (CCFM). Zhao et al. 2024, "DETRs beat YOLOs on real-time object
// detection".
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/layers/layers.h>
#include <vector>

#include "options.h"
#include "transformer.h"

namespace millrace::rtdetr {

class HybridEncoder {
 public:
  HybridEncoder(const Scope& scope, const EncoderOptions& options, double norm_eps);

  /// Returns maps of the same sizes as the input maps (N, hidden_dim, H_l, W_l), fine to coarse,
  /// each half as large as the one before. X is at::Tensor, or onnx::Value in a graph.
  template <class X>
  std::vector<X> operator()(std::vector<X> maps, const NormMode& mode) const;

 private:
  /// A transformer layer (Vaswani et al. 2017) with GELU.
  struct TransformerLayer {
    SelfAttention attention;
    LayerNorm first_norm, last_norm;
    Linear hidden, out;
    template <class X>
    X operator()(const X& x, const X& positions) const;
  };

  /// A 3x3 and a parallel 1x1 convolution (Ding et al. 2021, "RepVGG").
  struct RepVgg {
    ConvNorm three, one;
    template <class X>
    X operator()(const X& x, const NormMode& mode) const;
  };

  /// A fusion of two maps in two branches, one of them with RepVGG blocks.
  struct CspRep {
    ConvNorm deep, side, last;
    std::vector<RepVgg> blocks;
    bool widens = false;
    template <class X>
    X operator()(const X& a, const X& b, const NormMode& mode) const;
  };

  /// Applies AIFI to the coarsest map.
  at::Tensor attended(const at::Tensor& map) const;
  onnx::Value attended(const onnx::Value& map) const;

  TransformerLayer aifi_;
  std::vector<ConvNorm> lateral_, down_;
  std::vector<CspRep> top_down_, bottom_up_;
};

}  // namespace millrace::rtdetr
