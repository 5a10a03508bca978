#include "millrace/models/layers/anchors.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cmath>
#include <stdexcept>

namespace millrace {
namespace {

using Cell = std::array<double, 4>;

/// Around (0, 0), of area size x size.
Cell exact_cell(double size, double ratio) {
  const double half_width = size / std::sqrt(ratio) / 2, half_height = size * std::sqrt(ratio) / 2;
  return {-half_width, -half_height, half_width, half_height};
}

/// py-faster-rcnn's: whole sides of a stride's square cell, then scaled; the last pixel belongs to
/// the box.
Cell legacy_cell(double size, double ratio, double stride) {
  const double scale = size / stride, centre = (stride - 1) / 2;
  const double side = std::nearbyint(std::sqrt(stride * stride / ratio));
  const double width = side * scale, height = std::nearbyint(side * ratio) * scale;
  return {centre - (width - 1) / 2, centre - (height - 1) / 2, centre + (width - 1) / 2,
          centre + (height - 1) / 2};
}

Cell cell_of(double size, double ratio, const std::string& kind, double stride) {
  if (kind == "legacy") return legacy_cell(size, ratio, stride);
  auto cell = exact_cell(size, ratio);
  if (kind == "exact") return cell;
  if (kind != "rounded")
    throw std::invalid_argument("anchor cells are exact, rounded or legacy, not '" + kind + "'");
  for (auto& side : cell) side = std::nearbyint(side);
  return cell;
}

}  // namespace

at::Tensor cell_anchors(const std::vector<double>& sizes, const AnchorOptions& options,
                        double stride) {
  const auto count = std::ssize(sizes) * std::ssize(options.ratios);
  auto cells = at::empty({count, 4}, at::kFloat);
  auto* out = cells.mutable_data_ptr<float>();
  for (const double size : sizes)
    for (const double ratio : options.ratios)
      for (const double side : cell_of(size, ratio, options.cells, stride))
        *out++ = static_cast<float>(side);
  return cells;
}

at::Tensor grid_anchors(const at::Tensor& cells, std::int64_t height, std::int64_t width,
                        std::pair<double, double> stride) {
  const auto reference = cells.contiguous();
  const auto* first = reference.const_data_ptr<float>();
  const auto* last = first + reference.numel();
  auto anchors = at::empty({height * width * reference.size(0), 4}, reference.options());
  auto* out = anchors.mutable_data_ptr<float>();
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto down = static_cast<float>(static_cast<double>(y) * stride.first);
      const auto right = static_cast<float>(static_cast<double>(x) * stride.second);
      for (const auto* cell = first; cell != last; cell += 4) {
        *out++ = cell[0] + right;
        *out++ = cell[1] + down;
        *out++ = cell[2] + right;
        *out++ = cell[3] + down;
      }
    }
  return anchors;
}

}  // namespace millrace
