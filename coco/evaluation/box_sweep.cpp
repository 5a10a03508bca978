#include "millrace/coco/evaluation/box_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace millrace::coco {

void BoxSweep::begin(Objects objects) {
  finite_ = std::ranges::all_of(objects, [](const Annotation* object) {
    return std::isfinite(object->bbox[0]) && std::isfinite(object->bbox[2] + object->bbox[0]);
  });
  by_left_.resize(objects.size());
  std::iota(by_left_.begin(), by_left_.end(), 0U);
  if (!finite_) return;
  std::ranges::sort(by_left_, {}, [&](std::uint32_t g) { return objects[g]->bbox[0]; });
  left_.clear();
  farthest_.clear();
  double farthest = -std::numeric_limits<double>::infinity();
  for (const std::uint32_t g : by_left_) {
    const double* box = objects[g]->bbox;
    left_.push_back(box[0]);
    farthest_.push_back(farthest = std::max(farthest, box[2] + box[0]));
  }
}

std::span<const std::uint32_t> BoxSweep::beside(const Xywh& box) const {
  const double left = box[0], right = box[2] + box[0];  // summed as in box_iou
  if (!finite_ || !std::isfinite(left) || !std::isfinite(right)) return by_left_;
  const auto begin = std::ranges::upper_bound(farthest_, left) - farthest_.begin();
  const auto end = std::ranges::lower_bound(left_, right) - left_.begin();
  if (begin >= end) return {};
  return std::span(by_left_).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(end - begin));
}

}  // namespace millrace::coco
