// Anchors: reference boxes at every place of every feature map.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/options.h"

namespace millrace {

/// The anchors of a feature pyramid, as configured.
struct PyramidAnchors {
  std::vector<double> sizes = {32, 64, 128, 256, 512};
  std::vector<double> ratios = {0.5, 1, 2};  // height / width
  std::string rounding = "exact";
  std::string stride = "level";
  std::int64_t scales = 1;  // a level's sizes: size, size 2^(1/scales), ...
  std::string order = "size";

  void describe(Options& o);
  void use_torchvision();
  void check(const Config& table) const;

  /// Anchors at each place of a map.
  std::int64_t cell_count() const { return scales * std::ssize(ratios); }

  /// All anchors of each map (N, C, H_l, W_l), (H_l W_l A, 4). The first map's stride is
  /// `first_stride` pixels and doubles from map to map; `padded` is the batch's (height, width).
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& maps,
                                     std::pair<std::int64_t, std::int64_t> padded,
                                     std::int64_t first_stride) const;
};

/// The boxes of one cell around (0, 0), (A, 4): sizes (square root of the area, pixels) outer,
/// ratios inner. `rounding`: exact (detectron2), rounded (torchvision rounds the corners) or legacy
/// (quantised py-faster-rcnn cells).
at::Tensor cell_anchors(const std::vector<double>& sizes, const std::vector<double>& ratios,
                        const std::string& rounding, double stride);

/// All anchors of one level, (H W A, 4), order y, x, A. `stride` is (y, x) in pixels.
at::Tensor grid_anchors(const at::Tensor& cells, std::int64_t height, std::int64_t width,
                        std::pair<double, double> stride);

}  // namespace millrace
