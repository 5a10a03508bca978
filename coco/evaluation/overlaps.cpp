#include "millrace/coco/evaluation/box_iou.h"
#include "millrace/coco/evaluation/matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/numpy_sum.h"
#include "millrace/coco/masks/boundary.h"
#include "millrace/coco/masks/mask_extent.h"

namespace millrace::coco {
namespace {

/// Returns the mask that pycocotools uses for a detection with only a box.
Rle filled_box(const Xywh& box, std::uint32_t height, std::uint32_t width) {
  const double x1 = box[0], y1 = box[1], x2 = x1 + box[2], y2 = y1 + box[3];
  const Polygon outline = {x1, y1, x1, y2, x2, y2, x2, y1};
  return from_polygons({&outline, 1}, height, width);
}

/// OKS as pycocotools' computeOks computes it, including the order of operations. Reuses its
/// memory.
class Similarity {
 public:
  explicit Similarity(const Plan& plan) : plan_(plan) {}

  void begin(const Annotation& object) {
    object_ = &object;
    area_ = object.area + std::numeric_limits<double>::epsilon();
    visible_.clear();
    const auto given = plan_.truth.keypoints_of(object);
    for (std::size_t i = 0; i < given.size() / 3; ++i)
      if (given[3 * i + 2] > 0) visible_.push_back({i, given[3 * i], given[3 * i + 1]});
    any_ = !visible_.empty();
    for (std::size_t i = 0; i < plan_.variances.size() && !any_; ++i) visible_.push_back({i, 0, 0});
    for (Point& point : visible_) point.scale = 1 / (2 * plan_.variances[point.index] * area_);
  }

  /// Returns the OKS; may return 0 if it is below `least`.
  double with(std::span<const double> found, double least) {
    const auto count = static_cast<double>(visible_.size());
    if (most(found) < least * count) return 0;
    terms_.clear();
    for (const Point& point : visible_)
      terms_.push_back(
          std::exp(-(squared_distance(found, point) / plan_.variances[point.index] / area_ / 2)));
    return numpy_sum(terms_) / count;
  }

 private:
  struct Point {
    std::size_t index;
    double x, y;
    double scale = 0;  // factor from squared distances to exponents, up to rounding
  };

  /// Returns the squared distance from a keypoint of the object or, if none is visible, from its
  /// box enlarged three times.
  double squared_distance(std::span<const double> found, const Point& point) const {
    const double x = found[3 * point.index], y = found[3 * point.index + 1];
    double dx = x - point.x, dy = y - point.y;
    if (!any_) {
      const double* box = object_->bbox;
      dx = std::max(0., box[0] - box[2] - x) + std::max(0., x - (box[0] + box[2] * 2));
      dy = std::max(0., box[1] - box[3] - y) + std::max(0., y - (box[1] + box[3] * 2));
    }
    return dx * dx + dy * dy;
  }

  /// Returns an upper bound of the sum of all terms without computing exponentials.
  double most(std::span<const double> found) const {
    double sum = 0;
    for (const Point& point : visible_) {
      const double exponent = squared_distance(found, point) * point.scale;
      sum += exponent > 3 ? .0498 : exponent > 1 ? .368 : 1 + 1e-9;  // e^-3 is .04978...
    }
    return sum;
  }

  const Plan& plan_;
  const Annotation* object_ = nullptr;
  double area_ = 0;
  bool any_ = false;  // true if any keypoint is visible
  std::vector<Point> visible_;
  std::vector<double> terms_;
};

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

Xywh measured_box(const Detections& all, const Detections::Record& one) {
  if (one.has_bbox) return one.bbox;
  if (one.mask == Detections::kNoMask) return box_around(all.keypoints_of(one));
  const Box box = all.mask_of(one).extent.box;
  return {box.x1, box.y1, box.width(), box.height()};
}

void keypoint_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                       double least, std::vector<double>& out) {
  const std::size_t count = plan.variances.size();
  for (const Annotation* object : objects)
    if (object->keypoint_count != 0 && object->keypoint_count != count)
      throw Error(fmt::format("annotation {} (image {}) has {} keypoints, but there are {} sigmas",
                              object->id, object->image_id, object->keypoint_count, count));
  for (const std::uint32_t d : found)
    if (const std::size_t its = all.keypoints_of(all[d]).size() / 3; its != count)
      throw Error(fmt::format("detection {} (image {}) has {} keypoints, but there are {} sigmas",
                              d, all[d].image_id, its, count));
  out.resize(found.size() * objects.size());
  Similarity similarity(plan);
  for (std::size_t g = 0; g < objects.size(); ++g) {
    similarity.begin(*objects[g]);
    for (std::size_t d = 0; d < found.size(); ++d)
      out[d * objects.size() + g] = similarity.with(all.keypoints_of(all[found[d]]), least);
  }
}

void box_overlaps(const Plan& plan, const Detections& all, Indices found, Objects objects,
                  std::vector<double>& out) {
  out.clear();
  for (const std::uint32_t d : found) {
    const Xywh box = measured_box(all, all[d]);
    for (const Annotation* object : objects)
      out.push_back(box_iou(box.data(), object->bbox, plan.crowd(*object)));
  }
}

namespace {

/// The boundary of a mask, computed on first use.
class LazyBoundary {
 public:
  void forget() { made_ = false; }
  void make(const Rle& mask) {
    if (std::exchange(made_, true)) return;
    runs_ = boundary(mask);
    extent_ = extent_of(runs_);
  }
  /// Returns the IoU of two computed boundaries; may return 0 if it is below `least`.
  double iou_with(const LazyBoundary& truth, double least) const {
    return iou(extent_, truth.extent_, /*crowd=*/false, least,
               [&] { return shared_pixels(runs_, truth.runs_); });
  }

 private:
  bool made_ = false;
  Rle runs_;
  MaskExtent extent_;
};

}  // namespace

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
  const bool of_boundaries = plan.options.iou == IouType::boundary;
  std::vector<LazyBoundary> boundaries(of_boundaries ? objects.size() : 0);
  LazyBoundary own;
  Rle runs;  // the detection's mask, decoded on first use
  for (const std::uint32_t d : found) {
    const bool has_mask = all[d].mask != Detections::kNoMask;
    if (!has_mask) runs = filled_box(measured_box(all, all[d]), height, width);
    const MaskExtent extent = has_mask ? all.mask_of(all[d]).extent : extent_of(runs);
    bool decoded = !has_mask;
    own.forget();
    for (std::size_t g = 0; g < objects.size(); ++g) {
      const bool crowd = plan.crowd(*objects[g]);
      double overlap = iou(extent, extents[g], crowd, least, [&] {
        if (!std::exchange(decoded, true)) all.decode(d, runs);
        return shared_pixels(runs, masks[g]);
      });
      if (of_boundaries && !crowd && overlap > 0 && !(overlap < least)) {
        own.make(runs);
        boundaries[g].make(masks[g]);
        overlap = std::min(overlap, own.iou_with(boundaries[g], least));
      }
      out.push_back(overlap);
    }
  }
}

}  // namespace millrace::coco
