// Deformable attention over several maps (Zhu et al. 2021, "Deformable DETR"): each head of a query
// reads a few sampling points instead of all positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <millrace/models/onnx/graph.h>
#include <cstdint>
#include <utility>
#include <vector>

namespace millrace::rtdetr {

/// Height and width of each map, in the order of the maps in a memory.
using MapSizes = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Reads `values` (N, S, M, D) bilinearly at `locations` (N, Q, M, L, P, 2) and returns their sums
/// weighted by `weights` (N, Q, M, L, P) as (N, Q, M D), with gradients for all three. Shapes: N
/// images, S positions of all maps, row by row, M heads of D channels, Q queries, L maps, P points.
///
/// Locations are x and y as fractions of the map's width and height; values beyond its border are
/// zero (grid_sample with align_corners = false). Computes float or double, on the CPU; other types
/// are computed as float. The result has the same bytes for any number of threads. Throws
/// std::invalid_argument for inconsistent shapes.
at::Tensor deformable_attention(const at::Tensor& values, const MapSizes& sizes,
                                const at::Tensor& locations, const at::Tensor& weights);

/// Adds the nodes of deformable attention to a graph. `sizes`: a list of height and width for each
/// map.
onnx::Value deformable_attention(const onnx::Value& values, const std::vector<onnx::Value>& sizes,
                                 const onnx::Value& locations, const onnx::Value& weights);

}  // namespace millrace::rtdetr
