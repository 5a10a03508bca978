#include "millrace/coco/evaluation/box_iou.h"
#include "millrace/coco/evaluation/matching.h"

#include <utility>

#include "millrace/coco/masks/mask_extent.h"

namespace millrace::coco {
namespace {

Xywh box_of(const Detections& all, const Detections::Record& one) {
  if (one.has_bbox) return one.bbox;
  const Box box = all.mask_of(one).extent.box;
  return {box.x1, box.y1, box.width(), box.height()};
}

/// pycocotools' mask of a result that has only a box.
Rle filled_box(const Detections::Record& one, std::uint32_t height, std::uint32_t width) {
  const double x1 = one.bbox[0], y1 = one.bbox[1], x2 = x1 + one.bbox[2], y2 = y1 + one.bbox[3];
  const Polygon outline = {x1, y1, x1, y2, x2, y2, x2, y1};
  return from_polygons({&outline, 1}, height, width);
}

}  // namespace

void box_overlaps(const Detections& all, Indices found, Objects objects, std::vector<double>& out) {
  out.clear();
  for (const std::uint32_t d : found) {
    const Xywh box = box_of(all, all[d]);
    for (const Annotation* object : objects)
      out.push_back(box_iou(box.data(), object->bbox, object->crowd));
  }
}

void mask_overlaps(const Detections& all, Indices found, Objects objects, const Dataset& truth,
                   const Image& image, double least, std::vector<double>& out) {
  const auto height = static_cast<std::uint32_t>(image.height);
  const auto width = static_cast<std::uint32_t>(image.width);
  std::vector<Rle> masks;
  std::vector<MaskExtent> extents;
  masks.reserve(objects.size());
  extents.reserve(objects.size());
  for (const Annotation* object : objects) {
    masks.push_back(mask_of(truth.segmentation(*object), height, width));
    extents.push_back(extent_of(masks.back()));
  }
  out.clear();
  Rle runs;  // a detection's, decoded when first asked for
  for (const std::uint32_t d : found) {
    const bool has_mask = all[d].mask != Detections::kNoMask;
    if (!has_mask) runs = filled_box(all[d], height, width);
    const MaskExtent extent = has_mask ? all.mask_of(all[d]).extent : extent_of(runs);
    bool decoded = !has_mask;
    for (std::size_t g = 0; g < objects.size(); ++g)
      out.push_back(iou(extent, extents[g], objects[g]->crowd, least, [&] {
        if (!std::exchange(decoded, true)) all.decode(d, runs);
        return shared_pixels(runs, masks[g]);
      }));
  }
}

}  // namespace millrace::coco
