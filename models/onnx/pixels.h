// Pixels in a graph: the sizes and bytes that detectors receive from [data], with the same
// arithmetic.
#pragma once

#include <cstdint>

#include "millrace/models/onnx/operations.h"

namespace millrace::onnx {

/// Computes resize_bilinear (dataflow/image), to the byte: resizes an image (H, W, 3) uint8 to
/// `size`, a list of height and width.
Value resize_bilinear(const Value& image, const Value& size);

/// Computes resize_antialiased (dataflow/image), to the byte; arguments as for resize_bilinear.
Value resize_antialiased(const Value& image, const Value& size);

/// Mirrors each of the images (N, H, W, 3) within its own width; `sizes` (N, 2): height, width.
Value mirrored(const Value& images, const Value& sizes);

/// Computes shortest_edge_size or torchvision_size (dataflow/stages): a list of height and width,
/// from that of an image.
Value resized_size(const Value& size, std::int64_t short_side, std::int64_t max_side,
                   bool torchvision);

/// Returns sides times a factor, at least 1.
Value scaled_size(const Value& size, double scale);

}  // namespace millrace::onnx
