// Parts of transformers, named as in transformers the package. Each is called on tensors or, to add
// its nodes to a graph, on onnx::Values. Shapes: N images, S places or queries, C channels.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/layers/layers.h>
#include <millrace/models/onnx/graph.h>
#include <cstdint>
#include <vector>

namespace rtdetr {

using millrace::Linear;
using millrace::Scope;
namespace onnx = millrace::onnx;

/// A linear layer whose weights start uniform in [-bound, bound) and whose bias is `bias`.
Linear linear(const Scope& scope, std::int64_t in, std::int64_t out, double bound, double bias = 0);
/// The same with PyTorch's bound, 1 / sqrt(in), and with that of Glorot and Bengio 2010.
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

/// Multi-head self-attention (Vaswani et al. 2017); positions are added to queries and keys.
struct SelfAttention {
  Linear query, key, value, out;
  std::int64_t heads = 1;

  SelfAttention() = default;
  SelfAttention(const Scope& scope, std::int64_t channels, std::int64_t heads);
  /// x and positions (N, S, C); `mask` (S, S), added to the logits, may be undefined.
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
  at::Tensor operator()(const at::Tensor& x) const;
  onnx::Value operator()(const onnx::Value& x) const;
};

/// The places of a map (N, C, H, W), row by row: (N, H W, C).
at::Tensor by_place(const at::Tensor& map);
onnx::Value by_place(const onnx::Value& map);

}  // namespace rtdetr
