// The ground truth of a batch as tables on the device, so that operators process all images at
// once. Shapes: N images, G objects in all, P polygons, V points.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "millrace/models/layers/objects.h"

namespace millrace {

struct TruthPack {
  at::Tensor boxes;   // (G, 4)
  at::Tensor labels;  // (G) int64
  at::Tensor begins;  // (N + 1) int64: index of each image's first object
  at::Tensor sizes;   // (N, 4): width, height, width, height of each image

  at::Tensor padded;   // (N, M, 4): the boxes of each image in M slots, padded with zeros
  at::Tensor present;  // (N, M) bool: whether the slot is used

  at::Tensor points;          // (V, 2) double, pixels
  at::Tensor polygon_begins;  // (P + 1) int64: index of each polygon's first point
  at::Tensor object_begins;   // (G + 1) int64: index of each object's first polygon

  std::vector<const coco::Segmentation*> segmentations;  // (G) borrowed, on the host
  std::vector<std::int64_t> images;                      // (G) image index, on the host
  bool only_polygons = true;                             // every object's shape is polygons
};

/// Returns the tables of all images' truths: Truth::pack if it covers them, else new ones.
std::shared_ptr<const TruthPack> pack_of(const std::vector<Truth>& truths);

}  // namespace millrace
