#include "millrace/coco/evaluation/box_iou.h"
#include "millrace/coco/evaluation/matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/numpy_sum.h"
#include "millrace/coco/masks/mask_extent.h"

namespace millrace::coco {
namespace {

Xywh box_of(const Detections& all, const Detections::Record& one) {
  if (one.has_bbox) return one.bbox;
  if (one.mask == Detections::kNoMask) return box_around(all.keypoints_of(one));
  const Box box = all.mask_of(one).extent.box;
  return {box.x1, box.y1, box.width(), box.height()};
}

/// pycocotools' mask of a result that has only a box.
Rle filled_box(const Xywh& box, std::uint32_t height, std::uint32_t width) {
  const double x1 = box[0], y1 = box[1], x2 = x1 + box[2], y2 = y1 + box[3];
  const Polygon outline = {x1, y1, x1, y2, x2, y2, x2, y1};
  return from_polygons({&outline, 1}, height, width);
}

/// How alike keypoints are to those of an object: pycocotools' computeOks; the order of the
/// operations is part of it. `terms` is memory.
double similarity(std::span<const double> found, std::span<const double> object,
                  const Annotation& one, std::span<const double> variances,
                  std::vector<double>& terms) {
  const double* box = one.bbox;
  const double area = one.area + std::numeric_limits<double>::epsilon();
  const auto term = [&](std::size_t i, double dx, double dy) {
    terms.push_back(std::exp(-((dx * dx + dy * dy) / variances[i] / area / 2)));
  };
  terms.clear();
  for (std::size_t i = 0; i < object.size() / 3; ++i)
    if (object[3 * i + 2] > 0)
      term(i, found[3 * i] - object[3 * i], found[3 * i + 1] - object[3 * i + 1]);
  if (terms.empty()) {  // none is visible: the distances to the doubled box
    const double left = box[0] - box[2], right = box[0] + box[2] * 2;
    const double top = box[1] - box[3], bottom = box[1] + box[3] * 2;
    for (std::size_t i = 0; i < variances.size(); ++i) {
      const double x = found[3 * i], y = found[3 * i + 1];
      term(i, std::max(0., left - x) + std::max(0., x - right),
           std::max(0., top - y) + std::max(0., y - bottom));
    }
  }
  return numpy_sum(terms) / static_cast<double>(terms.size());
}

}  // namespace

Xywh box_around(std::span<const double> keypoints) {
  if (keypoints.empty()) return {};
  double x1 = keypoints[0], y1 = keypoints[1], x2 = x1, y2 = y1;
  for (std::size_t i = 0; i < keypoints.size(); i += 3) {
    x1 = std::min(x1, keypoints[i]), x2 = std::max(x2, keypoints[i]);
    y1 = std::min(y1, keypoints[i + 1]), y2 = std::max(y2, keypoints[i + 1]);
  }
  return {x1, y1, x2 - x1, y2 - y1};
}

void keypoint_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                       std::vector<double>& out) {
  const std::size_t count = plan.variances.size();
  for (const Annotation* object : objects)
    if (object->keypoint_count != 0 && object->keypoint_count != count)
      throw Error(fmt::format("annotation {} (image {}) has {} keypoints, and there are {} sigmas",
                              object->id, object->image_id, object->keypoint_count, count));
  out.clear();
  std::vector<double> terms;
  for (const std::uint32_t d : found) {
    const auto keypoints = all.keypoints_of(all[d]);
    if (keypoints.size() != 3 * count)
      throw Error(fmt::format("detection {} (image {}) has {} keypoints, and there are {} sigmas",
                              d, all[d].image_id, keypoints.size() / 3, count));
    for (const Annotation* object : objects)
      out.push_back(
          similarity(keypoints, plan.truth.keypoints_of(*object), *object, plan.variances, terms));
  }
}

void box_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                  std::vector<double>& out) {
  out.clear();
  for (const std::uint32_t d : found) {
    const Xywh box = box_of(all, all[d]);
    for (const Annotation* object : objects)
      out.push_back(box_iou(box.data(), object->bbox, plan.crowd(*object)));
  }
}

void mask_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                   const Image& image, double least, std::vector<double>& out) {
  const auto height = static_cast<std::uint32_t>(image.height);
  const auto width = static_cast<std::uint32_t>(image.width);
  std::vector<Rle> masks;
  std::vector<MaskExtent> extents;
  masks.reserve(objects.size());
  extents.reserve(objects.size());
  for (const Annotation* object : objects) {
    masks.push_back(mask_of(plan.truth.segmentation(*object), height, width));
    extents.push_back(extent_of(masks.back()));
  }
  out.clear();
  Rle runs;  // a detection's, decoded when first asked for
  for (const std::uint32_t d : found) {
    const bool has_mask = all[d].mask != Detections::kNoMask;
    if (!has_mask) runs = filled_box(box_of(all, all[d]), height, width);
    const MaskExtent extent = has_mask ? all.mask_of(all[d]).extent : extent_of(runs);
    bool decoded = !has_mask;
    for (std::size_t g = 0; g < objects.size(); ++g)
      out.push_back(iou(extent, extents[g], plan.crowd(*objects[g]), least, [&] {
        if (!std::exchange(decoded, true)) all.decode(d, runs);
        return shared_pixels(runs, masks[g]);
      }));
  }
}

}  // namespace millrace::coco
