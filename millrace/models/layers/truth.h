// The ground truth of a batch as detectors learn from it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// What the losses need of one image's ground truth; crowd regions are not part of it.
struct Truth {
  at::Tensor boxes;                                      // (G, 4) network pixels
  at::Tensor labels;                                     // (G) int64, 0 .. classes - 1
  std::vector<const coco::Segmentation*> segmentations;  // (G) borrowed from the batch
  double height = 0, width = 0;                          // true size of the image, network pixels
};

/// The ground truth of each image. It borrows from the batch.
std::vector<Truth> truths_of(const Batch& batch, at::Device device = at::kCPU);

}  // namespace millrace
