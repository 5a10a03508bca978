// Computes the maps of a detector's heads from a batch's pixels: normalisation, network and feature
// pyramid, as configured.
#pragma once

#include <ATen/core/Tensor.h>

#include <variant>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/hrfpn.h"
#include "millrace/models/backbones/hrnet.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/layers/pixels.h"

namespace millrace {

class Pyramid {
 public:
  /// Declares its parameters under `scope`, as body and fpn.
  Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top);

  /// Returns P2..P6, or P3..P7 with an FpnTop of two extra levels, or C4 alone: (N, channels,
  /// height / stride, width / stride) each. Height and width are the batch's, or those of `padded`
  /// if larger.
  std::vector<at::Tensor> operator()(const Batch& batch, const NormMode& mode,
                                     cv::Size padded = {}) const;

  /// Adds the nodes for pixels (N, H, W, 3) uint8 and the images' `sizes` (N, 2), height and width.
  /// `padded` is a list of height and width, at least those of the pixels.
  std::vector<onnx::Value> operator()(const onnx::Value& pixels, const onnx::Value& sizes,
                                      const onnx::Value& padded) const;

  /// Channels of each map.
  std::int64_t channels() const;

  /// Returns the ResNet; requires a backbone of C4 alone.
  const ResNet& resnet() const { return std::get<ResNet>(body_); }

 private:
  /// The neck without a pyramid: C4 of C2..C4.
  struct LastMap {
    template <class X>
    std::vector<X> operator()(const std::vector<X>& c, const NormMode&) const {
      return {c.back()};
    }
  };

  template <class X>
  std::vector<X> maps_of(const X& x, const NormMode& mode) const;

  PyramidOptions options_;
  std::size_t first_;  // index of the first of C2..C5 that the FPN uses
  at::Device device_;
  std::variant<ResNet, HrNet> body_;
  std::variant<LastMap, Fpn, HrFpn> neck_;
};

}  // namespace millrace
