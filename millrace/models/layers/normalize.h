// From a batch's bytes to the network's input.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

struct PixelOptions {
  bool bgr = true;
  std::array<float, 3> mean = {103.53F, 116.28F, 123.675F};  // in the network's order
  std::array<float, 3> std = {1, 1, 1};
};

/// (N, 3, H, W) floats on the device, channels last: (pixel - mean) / std inside each image, zero
/// in the padding. H and W are the batch's, or those of `padded` where it is larger.
at::Tensor normalize(const Batch& batch, const PixelOptions& options, at::Device device = at::kCPU,
                     cv::Size padded = {});

}  // namespace millrace
