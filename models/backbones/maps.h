// Operations of backbones on maps (N, C, H, W) besides convolutions, on tensors and as nodes of
// ONNX graphs, so that a network is written once, for X = at::Tensor and X = onnx::Value.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <cstdint>
#include <vector>

#include "millrace/models/onnx/operations.h"

namespace millrace {

/// Returns max(x, 0).
inline at::Tensor apply_relu(const at::Tensor& x) { return at::relu(x); }
inline onnx::Value apply_relu(const onnx::Value& x) { return onnx::apply("Relu", x); }

/// Max pooling of kernel x kernel pixels with stride 2.
inline at::Tensor max_pooled(const at::Tensor& x, std::int64_t kernel) {
  return at::max_pool2d(x, kernel, 2, kernel / 2);
}
inline onnx::Value max_pooled(const onnx::Value& x, std::int64_t kernel) {
  onnx::Attributes how{{"kernel_shape", onnx::Ints{kernel, kernel}}, {"strides", onnx::Ints{2, 2}}};
  if (kernel > 1) how.emplace_back("pads", onnx::Ints(4, kernel / 2));
  return x.graph->add("MaxPool", {x}, how);
}

/// Average pooling of 2 x 2 pixels with stride 2; at an odd border, of the remaining pixels.
inline at::Tensor average_pool(const at::Tensor& x) {
  return at::avg_pool2d(x, 2, 2, 0, /*ceil_mode=*/true, /*count_include_pad=*/false);
}
inline onnx::Value average_pool(const onnx::Value& x) {
  return x.graph->add("AveragePool", {x},
                      {{"kernel_shape", onnx::Ints{2, 2}},
                       {"strides", onnx::Ints{2, 2}},
                       {"ceil_mode", std::int64_t{1}}});
}

/// Concatenates the channels of maps of one size.
inline at::Tensor concat_channels(const std::vector<at::Tensor>& maps) { return at::cat(maps, 1); }
inline onnx::Value concat_channels(const std::vector<onnx::Value>& maps) {
  return onnx::concat(maps, 1);
}

/// Nearest-neighbour upsampling to the sides of `like`.
inline at::Tensor upsample_like(const at::Tensor& x, const at::Tensor& like) {
  return at::upsample_nearest2d(x, {like.size(2), like.size(3)});
}
inline onnx::Value upsample_like(const onnx::Value& x, const onnx::Value& like) {
  return onnx::upsample_nearest(x, onnx::sides_of(like, 2, 4));
}

}  // namespace millrace
