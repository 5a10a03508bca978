// What backbones do with maps (N, C, H, W) besides convolutions, on tensors and, as nodes, in
// graphs: a network is written once, for X = at::Tensor and X = onnx::Value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// max(x, 0)
at::Tensor rectified(const at::Tensor& x);
onnx::Value rectified(const onnx::Value& x);

/// Maxima of kernel x kernel pixels, at every second pixel.
at::Tensor max_pooled(const at::Tensor& x, std::int64_t kernel);
onnx::Value max_pooled(const onnx::Value& x, std::int64_t kernel);

/// Means of 2 x 2 pixels, at every second pixel; of what is left at an odd border.
at::Tensor averaged(const at::Tensor& x);
onnx::Value averaged(const onnx::Value& x);

/// The nearest pixels, at the sides of `like`.
at::Tensor upsampled(const at::Tensor& x, const at::Tensor& like);
onnx::Value upsampled(const onnx::Value& x, const onnx::Value& like);

}  // namespace millrace
