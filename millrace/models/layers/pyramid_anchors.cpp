#include "millrace/models/layers/pyramid_anchors.h"

#include <cmath>

#include "millrace/models/layers/anchors.h"
#include "millrace/models/layers/model_options.h"

namespace millrace {

void PyramidAnchors::describe(Options& o) {
  o.add("anchors.sizes", sizes, "square root of the anchors' area, one a level of the pyramid",
        {.min = 1, .unit = "px"})
      .decides(OfWeights::meaning);
  o.add("anchors.aspect_ratios", ratios, "height / width", {.min = 0.01, .max = 100})
      .decides(OfWeights::meaning);
  o.add("anchors.rounding", cells, "exact | rounded to integers (torchvision) | legacy quantised",
        {"exact", "rounded", "legacy"})
      .decides(OfWeights::meaning);
  o.add("anchors.stride", stride, "of the level, or padded size // grid (torchvision)",
        {"level", "grid"})
      .decides(OfWeights::meaning);
  o.add("anchors.scales_per_octave", scales, "sizes a level, evenly within an octave",
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
  cells = "rounded";
  stride = "grid";
  order = "ratio";
}

std::vector<at::Tensor> PyramidAnchors::operator()(const std::vector<at::Tensor>& maps,
                                                   std::pair<std::int64_t, std::int64_t> padded,
                                                   std::int64_t first_stride) const {
  const AnchorOptions options{.ratios = ratios, .cells = cells};
  std::vector<at::Tensor> anchors;
  for (std::size_t level = 0; level < maps.size(); ++level) {
    std::vector<double> sides;
    for (std::int64_t i = 0; i < scales; ++i) {
      const auto side =
          sizes[level] * std::exp2(static_cast<double>(i) / static_cast<double>(scales));
      sides.push_back(i > 0 && cells == "rounded" ? std::floor(side) : side);  // torchvision's
    }
    const auto height = maps[level].size(2), width = maps[level].size(3);
    const auto step = static_cast<double>(first_stride << level);
    const bool by_grid = stride == "grid";
    auto own = cell_anchors(sides, options, step);
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
