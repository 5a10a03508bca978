// Regions of images and their features, each taken from the pyramid level that fits its size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/ops/sampling.h"
#include "millrace/onnx/graph.h"

namespace millrace {

/// Regions drawn from the images of a batch: R of them, F in the foreground.
struct SampledRegions {
  at::Tensor rois;   // (R, 5): image index, x1 y1 x2 y2
  at::Tensor truth;  // (F) int64: ground truth of each foreground region, among TruthPack's
  Drawn drawn;       // which ones they are
};

struct PoolOptions {
  std::int64_t sampling_ratio = 0;
  bool aligned = true;
  double level_epsilon = 1e-8;
  double level_epsilon_after_log = 0;
  double level_canonical_size = 224;

  void describe(Options& o);
};

/// The pyramid level of each box, (R) int64 in 2..5 (Lin et al. 2017, equation 1).
at::Tensor region_levels(const at::Tensor& boxes, const PoolOptions& options);

/// features P2..P5 (N, C, H_l, W_l); rois (R, 5): image index, x1 y1 x2 y2 -> (R, C, size, size)
at::Tensor pool_regions(const std::vector<at::Tensor>& features, const at::Tensor& rois,
                        std::int64_t size, const PoolOptions& options);

/// Regions of N images in a graph: P in all, image after image.
struct RegionNodes {
  onnx::Value boxes;   // (P, 4)
  onnx::Value images;  // (P) int64
};

/// features P2..P5 -> (P, C, size, size)
onnx::Value pool_regions(const std::vector<onnx::Value>& features, const RegionNodes& regions,
                         std::int64_t size, const PoolOptions& options);

/// Boxes of image 0, 1, ... as one list of rois, (R, 5).
at::Tensor as_rois(const std::vector<at::Tensor>& boxes);

}  // namespace millrace
