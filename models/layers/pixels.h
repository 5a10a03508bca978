// Converts a batch's bytes to a network's input.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/onnx/graph.h"

namespace millrace {

enum class ChannelOrder { rgb, bgr };
inline std::vector<std::string> value_names(ChannelOrder) { return {"rgb", "bgr"}; }

/// Normalisation of pixels: (pixel - mean) / std. The defaults are detectron2's.
struct PixelOptions {
  ChannelOrder pixel_order = ChannelOrder::bgr;
  std::vector<double> pixel_mean = {103.53, 116.28, 123.675};
  std::vector<double> pixel_std = {1, 1, 1};

  void describe(Options& o);
  /// Throws ConfigError unless mean and std have three numbers each.
  void check(const Config& table) const;
};

/// Returns (N, 3, H, W) on the device, channels last, in this thread's compute type: (pixel - mean)
/// / std inside each image, zero in the padding. H and W are the batch's, or those of `padded` if
/// larger.
at::Tensor normalize(const Batch& batch, const PixelOptions& options, at::Device device = at::kCPU,
                     cv::Size padded = {});

/// Adds the nodes for pixels (N, H', W', 3) uint8 and the images' `sizes` (N, 2), height and width.
/// `padded` is a list of height and width, at least those of the pixels.
onnx::Value normalize(const onnx::Value& pixels, const onnx::Value& sizes,
                      const onnx::Value& padded, const PixelOptions& options);

}  // namespace millrace
