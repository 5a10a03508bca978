// Deformable attention over several maps (Zhu et al. 2021, "Deformable DETR"): each head of a query
// reads a few points instead of all places.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/onnx/graph.h>
#include <cstdint>
#include <utility>
#include <vector>

namespace rtdetr {

namespace onnx = millrace::onnx;

/// Height and width of each map, in the order of their places in a memory.
using MapSizes = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Shapes: N images, S places (those of all maps, row by row), M heads of D channels, Q queries, L
/// maps, P points. Reads `values` (N, S, M, D) bilinearly at `locations` (N, Q, M, L, P, 2), x and
/// y in sides of the map, zero beyond its border (grid_sample's align_corners = false), and sums
/// them by `weights` (N, Q, M, L, P): (N, Q, M D), with gradients to all three. float or double, on
/// the CPU; other types are computed as float. The same bytes for any number of threads. Throws
/// std::invalid_argument for shapes that do not fit.
at::Tensor deformable_attention(const at::Tensor& values, const MapSizes& sizes,
                                const at::Tensor& locations, const at::Tensor& weights);

/// The same in a graph. `sizes`: a list of height and width for each map.
onnx::Value deformable_attention(const onnx::Value& values, const std::vector<onnx::Value>& sizes,
                                 const onnx::Value& locations, const onnx::Value& weights);

}  // namespace rtdetr
