#include "millrace/models/layers/anchors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/meshgrid.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/upload.h"

namespace millrace {
namespace {

using Cell = std::array<double, 4>;

/// Returns a box centred at (0, 0) with area size x size.
Cell exact_cell(double size, double ratio) {
  const double half_width = size / std::sqrt(ratio) / 2, half_height = size * std::sqrt(ratio) / 2;
  return {-half_width, -half_height, half_width, half_height};
}

/// Returns py-faster-rcnn's box: the sides of a stride's square cell are rounded, then scaled; the
/// last pixel belongs to the box.
Cell legacy_cell(double size, double ratio, double stride) {
  const double scale = size / stride, centre = (stride - 1) / 2;
  const double side = std::nearbyint(std::sqrt(stride * stride / ratio));
  const double width = side * scale, height = std::nearbyint(side * ratio) * scale;
  return {centre - (width - 1) / 2, centre - (height - 1) / 2, centre + (width - 1) / 2,
          centre + (height - 1) / 2};
}

}  // namespace

at::Tensor cell_anchors(const std::vector<double>& sizes, const std::vector<double>& ratios,
                        AnchorRounding rounding, double stride) {
  auto cells = at::empty({std::ssize(sizes) * std::ssize(ratios), 4}, at::kFloat);
  auto* out = cells.mutable_data_ptr<float>();
  for (const double size : sizes)
    for (const double ratio : ratios)
      for (const double side : rounding == AnchorRounding::legacy ? legacy_cell(size, ratio, stride)
                                                                  : exact_cell(size, ratio))
        *out++ =
            static_cast<float>(rounding == AnchorRounding::rounded ? std::nearbyint(side) : side);
  return cells;
}

at::Tensor grid_anchors(const at::Tensor& cells, std::int64_t height, std::int64_t width,
                        std::pair<double, double> stride) {
  const auto places = [&](std::int64_t count, double step) {
    return (at::arange(count, cells.options().dtype(at::kDouble)) * step).to(at::kFloat);
  };
  const auto grid =
      at::meshgrid({places(height, stride.first), places(width, stride.second)}, "ij");
  const auto shift = at::stack({grid[1], grid[0], grid[1], grid[0]}, 2);  // (H, W, 4)
  return (cells + shift.unsqueeze(2)).reshape({-1, 4});
}

void PyramidAnchors::describe(Options& o) {
  o.add("anchors.sizes", sizes,
        "square roots of the anchors' areas, one per pyramid level; with C4, all at each cell",
        {.min = 1, .unit = "px"})
      .affects(WeightEffect::meaning);
  o.add("anchors.aspect_ratios", aspect_ratios, "height / width of the anchors",
        {.min = 0.01, .max = 100})
      .affects(WeightEffect::meaning);
  o.add("anchors.rounding", rounding,
        "anchor coordinates: exact, rounded to integers (torchvision), or legacy (quantised)")
      .affects(WeightEffect::meaning);
  o.add("anchors.stride", stride,
        "anchor stride: that of the level, or padded size // grid (torchvision)")
      .affects(WeightEffect::meaning);
  o.add("anchors.scales_per_octave", scales_per_octave,
        "anchor sizes per level, evenly spaced within an octave", {.min = 1, .max = 16})
      .affects(WeightEffect::meaning);
  o.add("anchors.order", order,
        "order of a cell's anchors: by size then ratio, or by ratio then size (torchvision)")
      .affects(WeightEffect::meaning);
}

void PyramidAnchors::check(const Config& table) const {
  if (one_map)
    require(table, "anchors.sizes", !sizes.empty(), "needs at least one size");
  else
    require(table, "anchors.sizes", sizes.size() == 5,
            "needs one size for each of the five levels");
  require(table, "anchors.aspect_ratios", !aspect_ratios.empty(), "needs at least one ratio");
}

void PyramidAnchors::use_torchvision() {
  rounding = AnchorRounding::rounded;
  stride = AnchorStride::grid;
  order = AnchorOrder::ratio;
}

at::Tensor PyramidAnchors::cell(std::size_t level, std::int64_t step) const {
  std::vector<double> sides;
  const auto own_sizes = one_map ? sizes : std::vector{sizes[level]};
  for (const double size : own_sizes)
    for (std::int64_t i = 0; i < scales_per_octave; ++i) {
      const auto side =
          size * std::exp2(static_cast<double>(i) / static_cast<double>(scales_per_octave));
      sides.push_back(i > 0 && rounding == AnchorRounding::rounded ? std::floor(side)
                                                                   : side);  // as in torchvision
    }
  const auto own = cell_anchors(sides, aspect_ratios, rounding, static_cast<double>(step));
  if (order != AnchorOrder::ratio) return own;
  return own.view({std::ssize(sides), std::ssize(aspect_ratios), 4})
      .transpose(0, 1)
      .reshape({-1, 4});
}

AnchorGrids::Grid AnchorGrids::make(const std::vector<at::Tensor>& maps,
                                    std::pair<std::int64_t, std::int64_t> padded) const {
  if (cells_.size() != maps.size() || cells_[0].device() != maps[0].device()) {
    cells_.clear();
    for (std::size_t level = 0; level < maps.size(); ++level)
      cells_.push_back(options_.cell(level, first_stride_ << level));
    cells_ = uploaded(std::move(cells_), maps[0].device());
  }
  Grid grid;
  std::vector<at::Tensor> levels;
  for (std::size_t level = 0; level < maps.size(); ++level) {
    const auto height = maps[level].size(2), width = maps[level].size(3);
    const auto step = static_cast<double>(first_stride_ << level);
    const bool by_grid = options_.stride == AnchorStride::grid;
    levels.push_back(grid_anchors(cells_[level], height, width,
                                  {by_grid ? static_cast<double>(padded.first / height) : step,
                                   by_grid ? static_cast<double>(padded.second / width) : step}));
    grid.counts.push_back(levels.back().size(0));
  }
  grid.anchors = at::cat(levels);
  return grid;
}

AnchorGrids::Grid AnchorGrids::operator()(const std::vector<at::Tensor>& maps,
                                          std::pair<std::int64_t, std::int64_t> padded) const {
  constexpr std::size_t kKept = 8;  // 4 MB each for images of 800 x 1333 pixels
  Sides sides;
  for (const auto& map : maps) sides.insert(sides.end(), {map.size(2), map.size(3)});
  sides.insert(sides.end(), {padded.first, padded.second});
  static std::mutex looking;  // micro-batches run concurrently
  const std::lock_guard lock(looking);
  auto found = std::ranges::find_if(grids_, [&](const auto& kept) {
    return kept.first == sides && kept.second.anchors.device() == maps[0].device();
  });
  if (found == grids_.end()) {
    if (grids_.size() == kKept) grids_.erase(grids_.begin());
    grids_.emplace_back(std::move(sides), make(maps, padded));
  } else {
    std::rotate(found, found + 1, grids_.end());
  }
  return grids_.back().second;
}

std::vector<onnx::Value> AnchorGrids::operator()(const std::vector<onnx::Value>& maps,
                                                 const onnx::Value& padded) const {
  auto& g = *padded.graph;
  const auto in = g.in("anchors");
  std::vector<onnx::Value> levels;
  for (std::size_t level = 0; level < maps.size(); ++level) {
    const auto step = first_stride_ << level;
    const auto sides = onnx::sides_of(maps[level], 2, 4);
    const auto steps =
        options_.stride == AnchorStride::grid ? padded / sides : g.ints({step, step});  // y, x
    const auto shape = onnx::concat({sides, g.ints({1})}, 0);                           // (H, W, 1)
    const auto places = [&](std::int64_t axis, const onnx::Ints& shape_of_axis) {
      const auto count = onnx::slice(sides, 0, axis, axis + 1);
      const auto at = onnx::range(count) * onnx::slice(steps, 0, axis, axis + 1);
      return onnx::expand(onnx::reshape(onnx::cast(at, onnx::Type::f32), shape_of_axis), shape);
    };
    const auto y = places(0, {-1, 1, 1}), x = places(1, {1, -1, 1});
    const auto shift = onnx::unsqueeze(onnx::concat({x, y, x, y}, 2), {2});
    const auto cells = g.constant(options_.cell(level, step), "cells");
    levels.push_back(onnx::reshape(shift + cells, {-1, 4}));
  }
  return levels;
}

}  // namespace millrace
