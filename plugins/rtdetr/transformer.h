// Parts of transformers, with the tensor names of the package transformers. Each can be called on
// tensors or, to add its nodes to a graph, on onnx::Values. Shapes: N images, S map positions or
// queries, C channels.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/backbones/maps.h>
#include <millrace/models/layers/layers.h>
#include <millrace/models/onnx/graph.h>
#include <cstdint>
#include <vector>

namespace millrace::rtdetr {

/// Creates a linear layer with weights uniform in [-bound, bound) and a constant bias.
Linear linear(const Scope& scope, std::int64_t in, std::int64_t out, double bound, double bias = 0);
/// Create a linear layer with PyTorch's bound, 1 / sqrt(in), and with that of Glorot and Bengio
/// 2010.
Linear linear(const Scope& scope, std::int64_t in, std::int64_t out);
Linear glorot_linear(const Scope& scope, std::int64_t in, std::int64_t out, double bias = 0);

/// Normalises over the last dimension.
struct LayerNorm {
  at::Tensor weight, bias;  // (C)
  double epsilon = 1e-5;

  LayerNorm() = default;
  LayerNorm(const Scope& scope, std::int64_t channels, double epsilon);
  at::Tensor operator()(const at::Tensor& x) const;
  onnx::Value operator()(const onnx::Value& x) const;
};

/// Multi-head self-attention (Vaswani et al. 2017). Positions are added to queries and keys.
struct SelfAttention {
  Linear query, key, value, out;
  std::int64_t heads = 1;

  SelfAttention() = default;
  SelfAttention(const Scope& scope, std::int64_t channels, std::int64_t heads);
  /// x and positions are (N, S, C). `mask` (S, S) is added to the logits; undefined = no mask.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& positions,
                        const at::Tensor& mask = {}) const;
  onnx::Value operator()(const onnx::Value& x, const onnx::Value& positions) const;
};

/// Linear layers with ReLUs between them.
struct Mlp {
  std::vector<Linear> layers;

  Mlp() = default;
  Mlp(const Scope& scope, std::int64_t in, std::int64_t hidden, std::int64_t out,
      std::int64_t count);
  template <class X>
  X operator()(const X& x) const {
    auto y = layers.front()(x);
    for (std::size_t i = 1; i < layers.size(); ++i) y = layers[i](apply_relu(y));
    return y;
  }
};

/// Flattens a map (N, C, H, W) row by row to (N, H W, C).
at::Tensor by_place(const at::Tensor& map);
onnx::Value by_place(const onnx::Value& map);

}  // namespace millrace::rtdetr
