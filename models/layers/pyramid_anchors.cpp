#include "models/layers/pyramid_anchors.h"

#include <fmt/format.h>

#include <cmath>

#include "base/errors.h"
#include "models/layers/anchors.h"

namespace millrace {

void PyramidAnchors::describe(Options& o) {
  o.add("anchor_sizes", sizes, "square root of the anchors' area, one a level of the pyramid",
        {.min = 1, .unit = "px"});
  o.add("anchor_ratios", ratios, "height / width", {.min = 0.01, .max = 100});
  o.add("anchor_cells", cells, "exact | rounded to integers (torchvision) | legacy quantised",
        {"exact", "rounded", "legacy"});
  o.add("anchor_stride", stride, "of the level, or padded size // grid (torchvision)",
        {"level", "grid"});
}

void PyramidAnchors::use_torchvision() {
  cells = "rounded";
  stride = "grid";
  whole_scales = true;
}

std::vector<at::Tensor> PyramidAnchors::operator()(const std::vector<at::Tensor>& maps,
                                                   std::pair<std::int64_t, std::int64_t> padded,
                                                   std::int64_t first_stride) const {
  if (sizes.size() != maps.size())
    throw ConfigError(
        fmt::format("model.anchor_sizes has {} values; it takes one for each of the {} levels",
                    sizes.size(), maps.size()));
  const AnchorOptions options{.ratios = ratios, .cells = cells};
  std::vector<at::Tensor> anchors;
  for (std::size_t level = 0; level < maps.size(); ++level) {
    std::vector<double> scales;
    for (std::int64_t i = 0; i < octaves; ++i) {
      const auto scale =
          sizes[level] * std::exp2(static_cast<double>(i) / static_cast<double>(octaves));
      scales.push_back(whole_scales ? std::floor(scale) : scale);
    }
    const auto height = maps[level].size(2), width = maps[level].size(3);
    const auto step = static_cast<double>(first_stride << level);
    const bool by_grid = stride == "grid";
    anchors.push_back(grid_anchors(cell_anchors(scales, options, step), height, width,
                                   {by_grid ? static_cast<double>(padded.first / height) : step,
                                    by_grid ? static_cast<double>(padded.second / width) : step}));
  }
  return anchors;
}

}  // namespace millrace
