#include "millrace/models/layers/anchors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/meshgrid.h>
#include <ATen/ops/stack.h>

#include <array>
#include <cmath>

namespace millrace {
namespace {

using Cell = std::array<double, 4>;

/// Centred at (0, 0), area size x size.
Cell exact_cell(double size, double ratio) {
  const double half_width = size / std::sqrt(ratio) / 2, half_height = size * std::sqrt(ratio) / 2;
  return {-half_width, -half_height, half_width, half_height};
}

/// py-faster-rcnn's: sides of a stride's square cell, rounded, then scaled; the last pixel is part
/// of the box.
Cell legacy_cell(double size, double ratio, double stride) {
  const double scale = size / stride, centre = (stride - 1) / 2;
  const double side = std::nearbyint(std::sqrt(stride * stride / ratio));
  const double width = side * scale, height = std::nearbyint(side * ratio) * scale;
  return {centre - (width - 1) / 2, centre - (height - 1) / 2, centre + (width - 1) / 2,
          centre + (height - 1) / 2};
}

}  // namespace

at::Tensor cell_anchors(const std::vector<double>& sizes, const std::vector<double>& ratios,
                        const std::string& rounding, double stride) {
  auto cells = at::empty({std::ssize(sizes) * std::ssize(ratios), 4}, at::kFloat);
  auto* out = cells.mutable_data_ptr<float>();
  for (const double size : sizes)
    for (const double ratio : ratios)
      for (const double side :
           rounding == "legacy" ? legacy_cell(size, ratio, stride) : exact_cell(size, ratio))
        *out++ = static_cast<float>(rounding == "rounded" ? std::nearbyint(side) : side);
  return cells;
}

at::Tensor grid_anchors(const at::Tensor& cells, std::int64_t height, std::int64_t width,
                        std::pair<double, double> stride) {
  const auto places = [](std::int64_t count, double step) {
    return (at::arange(count, at::kDouble) * step).to(at::kFloat);
  };
  const auto grid =
      at::meshgrid({places(height, stride.first), places(width, stride.second)}, "ij");
  const auto shift = at::stack({grid[1], grid[0], grid[1], grid[0]}, 2);  // (H, W, 4)
  return (cells + shift.unsqueeze(2)).reshape({-1, 4});
}

void PyramidAnchors::describe(Options& o) {
  o.add("anchors.sizes", sizes, "square root of the anchors' area, one per level of the pyramid",
        {.min = 1, .unit = "px"})
      .decides(OfWeights::meaning);
  o.add("anchors.aspect_ratios", ratios, "height / width", {.min = 0.01, .max = 100})
      .decides(OfWeights::meaning);
  o.add("anchors.rounding", rounding,
        "exact | rounded to integers (torchvision) | legacy quantised",
        {"exact", "rounded", "legacy"})
      .decides(OfWeights::meaning);
  o.add("anchors.stride", stride, "of the level, or padded size // grid (torchvision)",
        {"level", "grid"})
      .decides(OfWeights::meaning);
  o.add("anchors.scales_per_octave", scales, "sizes per level, evenly within an octave",
        {.min = 1, .max = 16})
      .decides(OfWeights::meaning);
  o.add("anchors.order", order,
        "a place's anchors go by size and then ratio, or by ratio and then size (torchvision)",
        {"size", "ratio"})
      .decides(OfWeights::meaning);
}

void PyramidAnchors::check(const Config& table) const {
  require(table, "anchors.sizes", sizes.size() == 5, "takes one size for each of the five levels");
  require(table, "anchors.aspect_ratios", !ratios.empty(), "takes at least one ratio");
}

void PyramidAnchors::use_torchvision() {
  rounding = "rounded";
  stride = "grid";
  order = "ratio";
}

std::vector<at::Tensor> PyramidAnchors::operator()(const std::vector<at::Tensor>& maps,
                                                   std::pair<std::int64_t, std::int64_t> padded,
                                                   std::int64_t first_stride) const {
  std::vector<at::Tensor> anchors;
  for (std::size_t level = 0; level < maps.size(); ++level) {
    std::vector<double> sides;
    for (std::int64_t i = 0; i < scales; ++i) {
      const auto side =
          sizes[level] * std::exp2(static_cast<double>(i) / static_cast<double>(scales));
      sides.push_back(i > 0 && rounding == "rounded" ? std::floor(side) : side);  // torchvision's
    }
    const auto height = maps[level].size(2), width = maps[level].size(3);
    const auto step = static_cast<double>(first_stride << level);
    const bool by_grid = stride == "grid";
    auto own = cell_anchors(sides, ratios, rounding, step);
    if (order == "ratio")
      own = own.view({scales, std::ssize(ratios), 4}).transpose(0, 1).reshape({-1, 4});
    anchors.push_back(grid_anchors(own, height, width,
                                   {by_grid ? static_cast<double>(padded.first / height) : step,
                                    by_grid ? static_cast<double>(padded.second / width) : step})
                          .to(maps[level].device()));
  }
  return anchors;
}

}  // namespace millrace
