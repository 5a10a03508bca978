// SimOTA (Ge et al. 2021), which assigns objects to cells of the head.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace millrace::yolox {

/// The P cells of all levels, level by level and row by row.
struct Grid {
  at::Tensor corners;  // (P, 2) float: column and row of each cell
  at::Tensor strides;  // (P) float: stride in pixels

  /// Returns the grid for an input of height x width pixels, multiples of the largest stride.
  static Grid of(std::int64_t height, std::int64_t width, at::Device device);
};

/// Decodes the head's boxes (..., 4) of cells with `corners` (..., 2) and `strides` (...) to centre
/// and sides in pixels.
at::Tensor decoded(const at::Tensor& predicted, const at::Tensor& corners,
                   const at::Tensor& strides);

/// Converts boxes x1, y1, x2, y2 (G, 4) to centre and sides, with the rounding of the package
/// `yolox`.
at::Tensor by_centre(const at::Tensor& boxes);

/// The output of the head for N images, detached, on any device.
struct Outputs {
  at::Tensor boxes;    // (N, P, 4) centre and sides in pixels
  at::Tensor objects;  // (N, P) logits
  at::Tensor classes;  // (N, P, K) logits
};

/// The F foreground cells, ordered by image and cell, on the device of the outputs.
struct Assignment {
  at::Tensor rows;     // (F) int64: index among the N P cells
  at::Tensor objects;  // (F) int64: index among the G objects of all images
  at::Tensor ious;     // (F) IoU of the predicted box and the object's box
};

/// Assigns objects to cells. The number of cells of an object is the sum of its ten largest IoUs,
/// rounded down, and at least 1; it gets the cells with the least cost. The cost is the
/// classification loss, plus three times the negative logarithm of the IoU, plus 1e5 if the cell is
/// not both inside the object's box and near its centre. Cells that are neither inside a box nor
/// near a centre are not considered. A cell that several objects select gets the object with the
/// least cost. Ties go to the lower index.
///
/// `boxes` (G, 4) as centre and sides and `labels` (G) belong to all images; `counts` has the
/// number of objects of each image. Runs on the host, with images in parallel; the result does not
/// depend on the number of threads.
Assignment assign(const Outputs& outputs, const Grid& grid, const at::Tensor& boxes,
                  const at::Tensor& labels, const std::vector<std::int64_t>& counts);

}  // namespace millrace::yolox
