// Regions of images and their features, each pooled from the pyramid level that fits its size.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/onnx/graph.h"
#include "millrace/models/ops/sampling.h"

namespace millrace {

/// Regions sampled from the images of a batch: R of them, F foreground.
struct SampledRegions {
  at::Tensor rois;            // (R, 5): image index, x1 y1 x2 y2
  at::Tensor truth;           // (F) int64: index in TruthPack of each foreground region's object
  SampledCandidates samples;  // their indices among the candidates
  at::Tensor pooled;          // (R, C, H, W): their features if heads share them
};

struct PoolOptions {
  std::int64_t sampling_ratio = 0;
  bool aligned = true;
  double level_eps = 1e-8;
  double level_eps_after_log = 0;
  double canonical_box_size = 224;

  void describe(Options& o);
};

/// Returns the pyramid level of each box, (R) int64 in 2..5 (Lin et al. 2017, equation 1).
at::Tensor region_levels(const at::Tensor& boxes, const PoolOptions& options);

/// Regions of N images in a graph: P in all, ordered by image.
struct RegionNodes {
  onnx::Value boxes;   // (P, 4)
  onnx::Value images;  // (P) int64
};

/// Pools the features of regions from a detector's maps.
class RegionPooler {
 public:
  /// Pools from a pyramid: each region from the level of P2..P5 that fits its size.
  RegionPooler(const PoolOptions& options) : options_(options) {}

  /// Pools from C4, then runs the backbone's last stage, which halves the sides (detectron2's
  /// Res5ROIHeads).
  RegionPooler(const PoolOptions& options, ResidualStage last_stage)
      : options_(options), last_stage_(std::move(last_stage)) {}

  /// Takes rois (R, 5): image index, x1 y1 x2 y2; returns (R, C, side(size), side(size)).
  at::Tensor operator()(const std::vector<at::Tensor>& maps, const at::Tensor& rois,
                        std::int64_t size, const NormMode& mode) const;
  onnx::Value operator()(const std::vector<onnx::Value>& maps, const RegionNodes& regions,
                         std::int64_t size) const;

  std::int64_t side(std::int64_t size) const { return has_last_stage() ? (size + 1) / 2 : size; }

  /// If true, all heads use regions of one size, so that the last stage runs once.
  bool has_last_stage() const { return !last_stage_.empty(); }

 private:
  PoolOptions options_;
  ResidualStage last_stage_;
};

/// Concatenates the boxes of images 0, 1, ... to rois (R, 5).
at::Tensor as_rois(const std::vector<at::Tensor>& boxes);

}  // namespace millrace
