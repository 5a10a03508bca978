#include "millrace/models/maskrcnn/mask_targets.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <algorithm>
#include <map>

#include "millrace/models/ops/axis_taps.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/upload.h"

namespace millrace {
namespace {

Box box_at(const float* corners, std::int64_t i) {
  return {corners[i * 4], corners[i * 4 + 1], corners[i * 4 + 2], corners[i * 4 + 3]};
}

at::Tensor mask_targets_on_cpu(const at::Tensor& points, const at::Tensor& polygon_begins,
                               const at::Tensor& object_begins, const at::Tensor& objects,
                               const at::Tensor& boxes, std::int64_t size) {
  const auto count = boxes.size(0);
  auto targets = at::empty({count, size, size}, at::kByte);
  auto* const out = targets.mutable_data_ptr<std::uint8_t>();
  const auto corners = boxes.contiguous();
  const auto* corner = corners.const_data_ptr<float>();
  const auto* point = points.const_data_ptr<double>();
  const auto* polygon = polygon_begins.const_data_ptr<std::int64_t>();
  const auto* object = object_begins.const_data_ptr<std::int64_t>();
  const auto which = objects.contiguous();
  const auto* own = which.const_data_ptr<std::int64_t>();
  at::parallel_for(0, count, 4, [&](std::int64_t begin, std::int64_t end) {
    std::vector<coco::Polygon> polygons;
    for (std::int64_t i = begin; i < end; ++i) {
      polygons.clear();
      for (auto p = object[own[i]]; p < object[own[i] + 1]; ++p)
        polygons.emplace_back(point + 2 * polygon[p], point + 2 * polygon[p + 1]);
      coco::rasterize_in_box(polygons, box_at(corner, i), static_cast<int>(size),
                             out + i * size * size);
    }
  });
  return targets.to(at::kFloat);
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("mask_targets", mask_targets_on_cpu); }

/// Crops masks (F) to their boxes (F, 4), on the CPU.
at::Tensor cropped(const std::vector<const coco::Rle*>& masks, const at::Tensor& boxes,
                   std::int64_t size) {
  auto targets = at::empty({std::ssize(masks), size, size}, at::kByte);
  auto* const out = targets.mutable_data_ptr<std::uint8_t>();
  const auto* corner = boxes.const_data_ptr<float>();
  at::parallel_for(0, std::ssize(masks), 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      coco::crop_in_box(*masks[static_cast<std::size_t>(i)], box_at(corner, i),
                        static_cast<int>(size), out + i * size * size);
  });
  return targets.to(at::kFloat);
}

/// Rasterises polygons on the device of the boxes; targets of objects with run lengths are empty.
at::Tensor polygon_targets(const TruthPack& pack, const at::Tensor& objects,
                           const at::Tensor& boxes, std::int64_t size) {
  static const auto op = dispatched<decltype(mask_targets_on_cpu)>("millrace::mask_targets");
  return op.call(pack.points, pack.polygon_begins, pack.object_begins, objects, boxes, size);
}

/// Rasterises polygons on the device and crops run lengths on the CPU. `objects_here` and `corners`
/// are copies of `objects` and `boxes` on the CPU.
at::Tensor binary_targets(const TruthPack& pack, const at::Tensor& objects, const at::Tensor& boxes,
                          const at::Tensor& objects_here, const at::Tensor& corners,
                          std::int64_t size) {
  auto targets = polygon_targets(pack, objects, boxes, size);
  const auto* object = objects_here.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> rows;
  std::vector<const coco::Rle*> masks;
  for (std::int64_t i = 0; i < objects_here.numel(); ++i)
    if (const auto* mask =
            std::get_if<coco::Rle>(pack.segmentations[static_cast<std::size_t>(object[i])])) {
      rows.push_back(i);
      masks.push_back(mask);
    }
  if (masks.empty()) return targets;
  const auto row = at::tensor(rows, at::kLong);
  const auto there =
      uploaded({row, cropped(masks, corners.index_select(0, row), size)}, boxes.device());
  return targets.index_copy_(0, there[0], there[1]);
}

/// Computes ROIAlign of a mask, one region at a time. Only the pixels under the region are decoded.
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

  /// Returns the first and the last row or column that is read.
  static std::pair<std::int64_t, std::int64_t> extent(const Taps& taps) {
    const auto all = taps.all();
    const auto [low, high] = std::ranges::minmax(all, {}, &Taps::Tap::index);
    return {low.index, high.index};
  }

  Taps rows_, columns_;
  std::vector<std::uint8_t> pixels_;
  std::vector<float> line_;  // weighted sum of a cell's rows, one number per column
};

at::Tensor soft_targets(const std::vector<const coco::Segmentation*>& shapes,
                        const at::Tensor& boxes, std::int64_t size, std::uint32_t height,
                        std::uint32_t width) {
  // Each shape is rasterised once for all its regions.
  std::map<const coco::Segmentation*, coco::Rle> masks;
  for (const auto* shape : shapes) masks.try_emplace(shape);
  std::vector<decltype(masks)::value_type*> distinct;
  for (auto& mask : masks) distinct.push_back(&mask);
  at::parallel_for(0, std::ssize(distinct), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      auto& [shape, mask] = *distinct[static_cast<std::size_t>(i)];
      const auto* polygons = std::get_if<std::vector<coco::Polygon>>(shape);
      mask = polygons ? coco::from_polygons(*polygons, height, width) : std::get<coco::Rle>(*shape);
    }
  });

  const auto corners = boxes.contiguous();
  const auto* corner = corners.const_data_ptr<float>();
  auto targets = at::empty({std::ssize(shapes), size, size}, at::kFloat);
  auto* const out = targets.mutable_data_ptr<float>();
  at::parallel_for(0, std::ssize(shapes), 1, [&](std::int64_t begin, std::int64_t end) {
    SoftTarget target;
    for (auto i = begin; i < end; ++i)
      target.write(masks.at(shapes[static_cast<std::size_t>(i)]), corner + 4 * i, size,
                   out + i * size * size);
  });
  return targets;
}

}  // namespace

at::Tensor mask_targets(const TruthPack& pack, const std::vector<Truth>& truths,
                        const at::Tensor& objects, const at::Tensor& boxes, std::int64_t size,
                        MaskTarget kind) {
  RECORD_USER_SCOPE("mask_targets");
  if (kind == MaskTarget::binary && pack.only_polygons)
    return polygon_targets(pack, objects, boxes, size);
  // One copy for both; indices are exact in float below 2^24.
  const auto here = at::cat({boxes, objects.to(at::kFloat).unsqueeze(1)}, 1).cpu();
  const auto corners = here.narrow(1, 0, 4).contiguous();
  const auto objects_here = here.select(1, 4).to(at::kLong);
  if (kind == MaskTarget::binary)
    return binary_targets(pack, objects, boxes, objects_here, corners, size);
  const auto* object = objects_here.const_data_ptr<std::int64_t>();
  std::vector<at::Tensor> targets{at::empty({0, size, size}, at::kFloat)};
  for (std::int64_t first = 0, last = 0; first < objects_here.numel(); first = last) {
    const auto image_of = [&](std::int64_t row) {
      return pack.images[static_cast<std::size_t>(object[row])];
    };
    std::vector<const coco::Segmentation*> shapes;
    for (; last < objects_here.numel() && image_of(last) == image_of(first); ++last)
      shapes.push_back(pack.segmentations[static_cast<std::size_t>(object[last])]);
    const auto& truth = truths[static_cast<std::size_t>(image_of(first))];
    targets.push_back(soft_targets(shapes, corners.narrow(0, first, last - first), size,
                                   static_cast<std::uint32_t>(truth.height),
                                   static_cast<std::uint32_t>(truth.width)));
  }
  return uploaded({at::cat(targets)}, boxes.device())[0];
}

}  // namespace millrace
