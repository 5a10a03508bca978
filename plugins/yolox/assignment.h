// Which cells of the head learn which object: SimOTA (Ge et al. 2021).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include <millrace/models/layers/objects.h>

namespace millrace::yolox {

/// The cells of all levels, P in all: level by level, row by row.
struct Grid {
  at::Tensor corners;  // (P, 2) float: column and row
  at::Tensor strides;  // (P) float: pixels

  /// For an input of height x width pixels, multiples of the largest stride.
  static Grid of(std::int64_t height, std::int64_t width, at::Device device);
};

/// Predicted boxes (..., 4), centre and sides in pixels, of the cells `corners` (..., 2) and
/// `strides` (...).
at::Tensor decoded(const at::Tensor& predicted, const at::Tensor& corners,
                   const at::Tensor& strides);

/// Boxes x1 y1 x2 y2 (G, 4) as centre and sides, rounded as the package rounds them.
at::Tensor by_centre(const at::Tensor& boxes);

/// The output of the head for N images, detached. On any device.
struct Outputs {
  at::Tensor boxes;    // (N, P, 4) pixels: centre and sides
  at::Tensor objects;  // (N, P) logits
  at::Tensor classes;  // (N, P, K) logits
};

/// The F cells that learn an object, image by image, by place. On the outputs' device.
struct Assignment {
  at::Tensor rows;     // (F) int64: of the N P cells
  at::Tensor objects;  // (F) int64: of the G objects of all images together
  at::Tensor ious;     // (F): overlap of the predicted box with the object's
};

/// Each object takes as many cells as its ten best overlaps add up to, those of the least cost:
/// classification, three times the negative logarithm of the overlap, and 1e5 for cells that are
/// not both inside its box and near its centre; cells that are neither in a box nor near a centre
/// take part in nothing. A cell that several objects take learns the one of the least cost. Equal
/// costs go by place. `truths` holds the boxes (G, 4) by centre and the labels of all images,
/// `counts` how many are each image's. Runs on the host, images in parallel; the same result for
/// any number of threads.
Assignment assign(const Outputs& outputs, const Grid& grid, const at::Tensor& boxes,
                  const at::Tensor& labels, const std::vector<std::int64_t>& counts);

}  // namespace millrace::yolox
