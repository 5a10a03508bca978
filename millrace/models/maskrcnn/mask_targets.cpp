#include "millrace/models/maskrcnn/mask_targets.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <map>

#include "millrace/models/ops/device_ops.h"
#include "millrace/models/ops/roi_align_kernel.h"

namespace millrace {
namespace {

at::Tensor binary_targets(const std::vector<const coco::Segmentation*>& shapes,
                          const at::Tensor& boxes, std::int64_t size) {
  const auto count = static_cast<std::int64_t>(shapes.size());
  auto targets = at::empty({count, size, size}, at::kByte);
  auto* const out = targets.data_ptr<std::uint8_t>();
  const auto corners = boxes.contiguous();
  const auto* corner = corners.data_ptr<float>();
  at::parallel_for(0, count, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Box box{corner[i * 4], corner[i * 4 + 1], corner[i * 4 + 2], corner[i * 4 + 3]};
      auto* const target = out + i * size * size;
      const auto& shape = *shapes[static_cast<std::size_t>(i)];
      if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape))
        coco::rasterize_in_box(*polygons, box, static_cast<int>(size), target);
      else
        coco::crop_in_box(std::get<coco::Rle>(shape), box, static_cast<int>(size), target);
    }
  });
  return targets.to(at::kFloat);
}

/// ROIAlign of a mask, one region after the other. Only the pixels under the region are decoded.
class SoftTarget {
 public:
  void write(const coco::Rle& mask, const float* corners, std::int64_t size, float* out) {
    const AxisOptions axis{.cells = size, .sampling_ratio = 0, .aligned = false};
    columns_.set(corners[0], corners[2], mask.width, axis);
    rows_.set(corners[1], corners[3], mask.height, axis);
    std::fill_n(out, size * size, 0.0F);
    if (rows_.all().empty() || columns_.all().empty()) return;
    const auto [top, bottom] = extent(rows_);
    const auto [left, right] = extent(columns_);
    const auto height = bottom - top + 1, width = right - left + 1;
    pixels_.resize(static_cast<std::size_t>(height * width));
    line_.resize(static_cast<std::size_t>(width));
    coco::decode(coco::window(mask, left, top, static_cast<std::uint32_t>(height),
                              static_cast<std::uint32_t>(width)),
                 pixels_.data());
    for (std::int64_t y = 0; y < size; ++y) {
      std::fill(line_.begin(), line_.end(), 0.0F);
      for (const auto& row : rows_[y]) {
        const auto* pixel = pixels_.data() + (row.index - top) * width;
        for (auto& sum : line_) sum += row.weight * static_cast<float>(*pixel++);
      }
      for (std::int64_t x = 0; x < size; ++x, ++out)
        for (const auto& column : columns_[x])
          *out += column.weight * line_[static_cast<std::size_t>(column.index - left)];
    }
  }

 private:
  using Taps = AxisTaps<float>;

  /// The first and the last row or column that is read.
  static std::pair<std::int64_t, std::int64_t> extent(const Taps& taps) {
    const auto all = taps.all();
    const auto [low, high] = std::ranges::minmax(all, {}, &Taps::Tap::index);
    return {low.index, high.index};
  }

  Taps rows_, columns_;
  std::vector<std::uint8_t> pixels_;
  std::vector<float> line_;  // weighted rows of a cell, a number a column
};

at::Tensor soft_targets(const std::vector<const coco::Segmentation*>& shapes,
                        const at::Tensor& boxes, std::int64_t size, std::uint32_t height,
                        std::uint32_t width) {
  std::map<const coco::Segmentation*, std::size_t>
      place;  // a shape is drawn once for all its regions
  for (const auto* shape : shapes) place.emplace(shape, 0);
  std::vector<const coco::Segmentation*> distinct;
  for (auto& [shape, index] : place) {
    index = distinct.size();
    distinct.push_back(shape);
  }
  std::vector<coco::Rle> masks(distinct.size());
  at::parallel_for(0, std::ssize(distinct), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const auto* polygons = std::get_if<std::vector<coco::Polygon>>(distinct[i]);
      masks[i] = polygons ? coco::from_polygons(*polygons, height, width)
                          : std::get<coco::Rle>(*distinct[i]);
    }
  });

  const auto corners = boxes.contiguous();
  const auto* corner = corners.const_data_ptr<float>();
  auto targets = at::empty({std::ssize(shapes), size, size}, at::kFloat);
  auto* const out = targets.mutable_data_ptr<float>();
  at::parallel_for(0, std::ssize(shapes), 1, [&](std::int64_t begin, std::int64_t end) {
    SoftTarget target;
    for (auto i = begin; i < end; ++i)
      target.write(masks[place.at(shapes[static_cast<std::size_t>(i)])], corner + 4 * i, size,
                   out + i * size * size);
  });
  return targets;
}

bool is_polygons(const coco::Segmentation* shape) {
  return std::holds_alternative<std::vector<coco::Polygon>>(*shape);
}

}  // namespace

at::Tensor mask_targets(const std::vector<const coco::Segmentation*>& shapes,
                        const at::Tensor& boxes, std::int64_t size, const std::string& kind,
                        double height, double width) {
  RECORD_USER_SCOPE("mask_targets");
  if (const auto* ops = device_ops(boxes)) {
    if (kind == "binary" && std::ranges::all_of(shapes, is_polygons))
      return ops->mask_targets(shapes, boxes, size);
    return mask_targets(shapes, boxes.cpu(), size, kind, height, width).to(boxes.device());
  }
  return kind == "soft" ? soft_targets(shapes, boxes, size, static_cast<std::uint32_t>(height),
                                       static_cast<std::uint32_t>(width))
                        : binary_targets(shapes, boxes, size);
}

}  // namespace millrace
