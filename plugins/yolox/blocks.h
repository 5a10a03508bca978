// The blocks of CSPDarknet and its pyramid (Ge et al. 2021). Each is called on tensors or, to add
// its nodes to a graph, on onnx::Values. Tensors are named as in the package `yolox`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include <millrace/models/layers/layers.h>
#include <millrace/models/onnx/graph.h>

namespace millrace::yolox {

/// What all blocks of a network share.
struct BlockOptions {
  bool depthwise = false;
  NormOptions norm;
};

// What blocks do besides convolutions.
at::Tensor joined(const std::vector<at::Tensor>& parts);  // channels after channels
onnx::Value joined(const std::vector<onnx::Value>& parts);
at::Tensor pooled(const at::Tensor& x);  // the largest of 5 x 5, stride 1
onnx::Value pooled(const onnx::Value& x);
at::Tensor doubled(const at::Tensor& x);  // height and width, nearest neighbour
onnx::Value doubled(const onnx::Value& x);
/// (N, C, H, W) -> (N, 4 C, H / 2, W / 2): of each 2 x 2 the upper left, lower left, upper right,
/// lower right pixel.
at::Tensor focused(const at::Tensor& x);
onnx::Value focused(const onnx::Value& x);

/// Convolution, batch norm, SiLU; depthwise: the same by channel, then across channels by 1 x 1.
class Conv {
 public:
  struct Shape {
    std::int64_t in, out, kernel;
    std::int64_t stride = 1;
  };

  /// Plain, whatever the network is.
  static Conv plain(const Scope& scope, const Shape& shape, const BlockOptions& options);
  /// Plain or depthwise, as the network is.
  Conv(const Scope& scope, const Shape& shape, const BlockOptions& options);

  at::Tensor operator()(const at::Tensor& x, const NormPass& pass) const;
  onnx::Value operator()(const onnx::Value& x, const NormPass& pass) const;

 private:
  std::vector<ConvNorm> convs_;
};

/// A 1x1 and a 3x3 convolution, with a shortcut where asked.
class Bottleneck {
 public:
  Bottleneck(const Scope& scope, std::int64_t channels, bool shortcut, const BlockOptions& options);

  template <class T>
  T operator()(const T& x, const NormPass& pass) const {
    const auto y = second_(first_(x, pass), pass);
    return shortcut_ ? y + x : y;
  }

 private:
  Conv first_, second_;
  bool shortcut_;
};

/// Bottlenecks on one half of the channels, and the other half past them (C3 of YOLOv5).
class CspLayer {
 public:
  struct Shape {
    std::int64_t in, out, count;
    bool shortcut = true;
  };

  CspLayer(const Scope& scope, const Shape& shape, const BlockOptions& options);

  template <class T>
  T operator()(const T& x, const NormPass& pass) const {
    auto y = first_(x, pass);
    const auto past = second_(x, pass);
    for (const auto& bottleneck : bottlenecks_) y = bottleneck(y, pass);
    return last_(joined({y, past}), pass);
  }

 private:
  Conv first_, second_, last_;
  std::vector<Bottleneck> bottlenecks_;
};

/// Largest values of 5 x 5, 9 x 9 and 13 x 13 beside the values themselves. The larger ones are the
/// 5 x 5 ones of those before: the same numbers.
class SppBottleneck {
 public:
  SppBottleneck(const Scope& scope, std::int64_t channels, const BlockOptions& options);

  template <class T>
  T operator()(const T& x, const NormPass& pass) const {
    const auto y = first_(x, pass), five = pooled(y), nine = pooled(five);
    return last_(joined({y, five, nine, pooled(nine)}), pass);
  }

 private:
  Conv first_, last_;
};

}  // namespace millrace::yolox
