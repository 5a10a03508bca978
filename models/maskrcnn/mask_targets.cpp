#include "models/maskrcnn/mask_targets.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>

#include "models/ops/roi_align.h"

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

at::Tensor soft_targets(const std::vector<const coco::Segmentation*>& shapes,
                        const at::Tensor& boxes, std::int64_t size, std::uint32_t height,
                        std::uint32_t width) {
  std::map<const coco::Segmentation*, std::int64_t>
      place;  // a shape is drawn once for all its regions
  for (const auto* shape : shapes) place.emplace(shape, static_cast<std::int64_t>(place.size()));
  auto bitmaps = at::empty({static_cast<std::int64_t>(place.size()), 1, height, width}, at::kByte);
  for (const auto& [shape, index] : place) {
    const auto* polygons = std::get_if<std::vector<coco::Polygon>>(shape);
    const auto mask =
        polygons ? coco::from_polygons(*polygons, height, width) : std::get<coco::Rle>(*shape);
    coco::decode(mask, bitmaps[index].data_ptr<std::uint8_t>());
  }
  auto rois = at::empty({boxes.size(0), 5});
  rois.narrow(1, 1, 4).copy_(boxes);
  for (std::size_t i = 0; i < shapes.size(); ++i)
    rois[static_cast<std::int64_t>(i)][0] = place.at(shapes[i]);
  return roi_align(bitmaps.to(at::kFloat), rois,
                   {.size = size, .scale = 1, .sampling_ratio = 0, .aligned = false})
      .squeeze(1);
}

}  // namespace

at::Tensor mask_targets(const std::vector<const coco::Segmentation*>& shapes,
                        const at::Tensor& boxes, std::int64_t size, const std::string& kind,
                        double height, double width) {
  return kind == "soft" ? soft_targets(shapes, boxes, size, static_cast<std::uint32_t>(height),
                                       static_cast<std::uint32_t>(width))
                        : binary_targets(shapes, boxes, size);
}

}  // namespace millrace
