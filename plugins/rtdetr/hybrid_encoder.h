// RT-DETR's encoder: attention within the coarsest map (AIFI), then convolutions across the maps,
// coarse to fine and back (CCFM). Zhao et al. 2024, "DETRs beat YOLOs on real-time object
// detection".
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/layers/layers.h>
#include <cstdint>
#include <vector>

#include "options.h"
#include "transformer.h"

namespace rtdetr {

using millrace::Activation;
using millrace::ConvNorm;
using millrace::NormMode;

/// Returns the sine and cosine embedding of the rows and columns of a map, (1, height width,
/// channels).
at::Tensor position_embedding(std::int64_t height, std::int64_t width, std::int64_t channels);
/// Adds the nodes of the embedding to a graph. `size`: a list of height and width.
onnx::Value position_embedding(const onnx::Value& size, std::int64_t channels);

class HybridEncoder {
 public:
  HybridEncoder(const Scope& scope, const EncoderOptions& options, double norm_eps);

  /// Returns maps of the same sizes as the input maps (N, hidden_dim, H_l, W_l), fine to coarse,
  /// each half as large as the one before.
  std::vector<at::Tensor> operator()(std::vector<at::Tensor> maps, const NormMode& mode) const;
  std::vector<onnx::Value> operator()(std::vector<onnx::Value> maps) const;

 private:
  /// A transformer layer (Vaswani et al. 2017) with GELU.
  struct TransformerLayer {
    SelfAttention attention;
    LayerNorm first_norm, last_norm;
    Linear hidden, out;
    at::Tensor operator()(const at::Tensor& x, const at::Tensor& positions) const;
    onnx::Value operator()(const onnx::Value& x, const onnx::Value& positions) const;
  };

  /// A 3x3 and a parallel 1x1 convolution (Ding et al. 2021, "RepVGG").
  struct RepVgg {
    ConvNorm three, one;
    at::Tensor operator()(const at::Tensor& x, const NormMode& mode) const;
    onnx::Value operator()(const onnx::Value& x) const;
  };

  /// A fusion of two maps in two branches, one of them with RepVGG blocks.
  struct CspRep {
    ConvNorm deep, side, last;
    std::vector<RepVgg> blocks;
    bool widens = false;
    at::Tensor operator()(const at::Tensor& a, const at::Tensor& b, const NormMode& mode) const;
    onnx::Value operator()(const onnx::Value& a, const onnx::Value& b) const;
  };

  TransformerLayer aifi_;
  std::vector<ConvNorm> lateral_, down_;
  std::vector<CspRep> top_down_, bottom_up_;
};

}  // namespace rtdetr
