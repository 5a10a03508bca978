// Anchors: reference boxes at every cell of every feature map.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/onnx/graph.h"

namespace millrace {

enum class AnchorRounding {
  exact,    // detectron2
  rounded,  // torchvision rounds the corners
  legacy,   // quantised py-faster-rcnn cells
};
inline std::vector<std::string> value_names(AnchorRounding) {
  return {"exact", "rounded", "legacy"};
}

/// The distance between a map's anchors: its stride, or the padded size divided by the map's.
enum class AnchorStride { level, grid };
inline std::vector<std::string> value_names(AnchorStride) { return {"level", "grid"}; }

/// The first sort key of a cell's anchors.
enum class AnchorOrder { size, ratio };
inline std::vector<std::string> value_names(AnchorOrder) { return {"size", "ratio"}; }

/// The anchors of a feature pyramid, as configured.
struct PyramidAnchors {
  std::vector<double> sizes = {32, 64, 128, 256, 512};
  std::vector<double> aspect_ratios = {0.5, 1, 2};  // height / width
  AnchorRounding rounding = AnchorRounding::exact;
  AnchorStride stride = AnchorStride::level;
  std::int64_t scales_per_octave = 1;  // sizes per level: size, size 2^(1/this), ...
  AnchorOrder order = AnchorOrder::size;
  bool one_map = false;  // all sizes at each cell of the only map; set by the detector

  void describe(Options& o);
  void use_torchvision();
  void check(const Config& table) const;

  /// Number of anchors at each cell of a map.
  std::int64_t cell_count() const {
    return scales_per_octave * std::ssize(aspect_ratios) * (one_map ? std::ssize(sizes) : 1);
  }

  /// Number of maps.
  std::size_t level_count() const { return one_map ? 1 : sizes.size(); }

  /// The boxes of one cell of a level with that stride, (A, 4).
  at::Tensor cell(std::size_t level, std::int64_t step) const;
};

/// All anchors of a pyramid's maps. The grids of the last sizes are cached, and the boxes of cells
/// stay on the device.
class AnchorGrids {
 public:
  struct Grid {
    at::Tensor anchors;                // (T, 4), by level, y, x, A
    std::vector<std::int64_t> counts;  // (L) number of anchors of each level
  };

  /// The first map's stride is `first_stride` pixels; each further map has twice its predecessor's.
  AnchorGrids(PyramidAnchors anchors, std::int64_t first_stride)
      : options_(std::move(anchors)), first_stride_(first_stride) {}

  /// Returns the anchors on the device of the maps (N, C, H_l, W_l). `padded` is the batch's
  /// (height, width). Thread-safe.
  Grid operator()(const std::vector<at::Tensor>& maps,
                  std::pair<std::int64_t, std::int64_t> padded) const;

  /// Returns the anchors (T_l, 4) of each level's map; `padded` is a list of height and width.
  std::vector<onnx::Value> operator()(const std::vector<onnx::Value>& maps,
                                      const onnx::Value& padded) const;

 private:
  using Sides = std::vector<std::int64_t>;  // those of each map, then the batch's

  Grid make(const std::vector<at::Tensor>& maps,
            std::pair<std::int64_t, std::int64_t> padded) const;

  PyramidAnchors options_;
  std::int64_t first_stride_;
  mutable std::vector<at::Tensor> cells_;              // one per level, on the device
  mutable std::vector<std::pair<Sides, Grid>> grids_;  // the most recently used is last
};

/// Returns the boxes of one cell around (0, 0), (A, 4): sizes (square root of the area, pixels) in
/// the outer loop, ratios in the inner.
at::Tensor cell_anchors(const std::vector<double>& sizes, const std::vector<double>& ratios,
                        AnchorRounding rounding, double stride);

/// Returns all anchors of one level, (H W A, 4), by y, x, A, on the device of `cells`. `stride` is
/// (y, x) in pixels.
at::Tensor grid_anchors(const at::Tensor& cells, std::int64_t height, std::int64_t width,
                        std::pair<double, double> stride);

}  // namespace millrace
