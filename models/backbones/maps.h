// Operations of backbones on maps (N, C, H, W) besides convolutions, on tensors and as nodes of
// ONNX graphs, so that a network is written once, for X = at::Tensor and X = onnx::Value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Returns max(x, 0).
at::Tensor apply_relu(const at::Tensor& x);
onnx::Value apply_relu(const onnx::Value& x);

/// Max pooling of kernel x kernel pixels with stride 2.
at::Tensor max_pooled(const at::Tensor& x, std::int64_t kernel);
onnx::Value max_pooled(const onnx::Value& x, std::int64_t kernel);

/// Average pooling of 2 x 2 pixels with stride 2; at an odd border, of the remaining pixels.
at::Tensor average_pool(const at::Tensor& x);
onnx::Value average_pool(const onnx::Value& x);

/// Concatenates the channels of maps of one size.
at::Tensor concat_channels(const std::vector<at::Tensor>& maps);
onnx::Value concat_channels(const std::vector<onnx::Value>& maps);

/// Nearest-neighbour upsampling to the sides of `like`.
at::Tensor upsample_like(const at::Tensor& x, const at::Tensor& like);
onnx::Value upsample_like(const onnx::Value& x, const onnx::Value& like);

}  // namespace millrace
