// The blocks of CSPDarknet and its pyramid (Ge et al. 2021). Each can be called on tensors or, to
// add its nodes to a graph, on onnx::Values. Tensors have the names of the package `yolox`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include <millrace/models/backbones/maps.h>
#include <millrace/models/layers/layers.h>
#include <millrace/models/onnx/graph.h>

namespace millrace::yolox {

/// Options of all blocks of a network.
struct BlockOptions {
  bool depthwise = false;
  NormOptions norm;
};

at::Tensor max_pool5(const at::Tensor& x);  // 5 x 5 max pooling with stride 1
onnx::Value max_pool5(const onnx::Value& x);
/// Moves each 2 x 2 pixels to channels, in the order upper left, lower left, upper right, lower
/// right: (N, C, H, W) -> (N, 4 C, H / 2, W / 2).
at::Tensor space_to_depth(const at::Tensor& x);
onnx::Value space_to_depth(const onnx::Value& x);

/// Convolution, batch norm and SiLU. A depthwise one is a convolution per channel, then a 1 x 1
/// convolution, each with batch norm and SiLU.
class Conv {
 public:
  struct Shape {
    std::int64_t in, out, kernel;
    std::int64_t stride = 1;
  };

  /// Creates a plain convolution, even in a depthwise network.
  static Conv plain(const Scope& scope, const Shape& shape, const BlockOptions& options);
  /// Creates a plain or depthwise convolution, as in `options`.
  Conv(const Scope& scope, const Shape& shape, const BlockOptions& options);

  template <class T>
  T operator()(const T& x, const NormMode& mode) const {
    auto y = x;
    for (const auto& conv : convs_) y = conv(y, mode, {.activation = Activation::silu});
    return y;
  }

 private:
  std::vector<ConvNorm> convs_;
};

/// A 1x1 and a 3x3 convolution, with an optional shortcut.
class Bottleneck {
 public:
  Bottleneck(const Scope& scope, std::int64_t channels, bool shortcut, const BlockOptions& options);

  template <class T>
  T operator()(const T& x, const NormMode& mode) const {
    const auto y = second_(first_(x, mode), mode);
    return shortcut_ ? y + x : y;
  }

 private:
  Conv first_, second_;
  bool shortcut_;
};

/// Two branches of half the channels, one of them with bottlenecks (C3 of YOLOv5).
class CspLayer {
 public:
  struct Shape {
    std::int64_t in, out, count;
    bool shortcut = true;
  };

  CspLayer(const Scope& scope, const Shape& shape, const BlockOptions& options);

  template <class T>
  T operator()(const T& x, const NormMode& mode) const {
    auto y = first_(x, mode);
    const auto past = second_(x, mode);
    for (const auto& bottleneck : bottlenecks_) y = bottleneck(y, mode);
    return last_(concat_channels({y, past}), mode);
  }

 private:
  Conv first_, second_, last_;
  std::vector<Bottleneck> bottlenecks_;
};

/// Spatial pyramid pooling: the values, concatenated with their 5 x 5, 9 x 9 and 13 x 13 max
/// pooling. The larger poolings are repeated 5 x 5 ones, which give the same values.
class SppBottleneck {
 public:
  SppBottleneck(const Scope& scope, std::int64_t channels, const BlockOptions& options);

  template <class T>
  T operator()(const T& x, const NormMode& mode) const {
    const auto y = first_(x, mode), five = max_pool5(y), nine = max_pool5(five);
    return last_(concat_channels({y, five, nine, max_pool5(nine)}), mode);
  }

 private:
  Conv first_, last_;
};

}  // namespace millrace::yolox
