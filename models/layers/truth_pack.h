// The ground truth of a batch as tables on the device, so that operators take all images at once.
// Shapes: N images, G objects in all, P polygons, V points.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "millrace/models/layers/objects.h"

namespace millrace {

struct TruthPack {
  at::Tensor boxes;   // (G, 4)
  at::Tensor labels;  // (G) int64
  at::Tensor begins;  // (N + 1) int64: where the objects of each image begin
  at::Tensor sizes;   // (N, 4): width, height, width, height of each image

  at::Tensor padded;   // (N, M, 4): the boxes of each image, of M places at most used; zeros follow
  at::Tensor present;  // (N, M) bool: whether the place is used

  at::Tensor points;          // (V, 2) double, pixels
  at::Tensor polygon_begins;  // (P + 1) int64: where the points of each polygon begin
  at::Tensor object_begins;   // (G + 1) int64: where the polygons of each object begin

  std::vector<const coco::Segmentation*> segmentations;  // (G) borrowed, on the host
  std::vector<std::int64_t> images;                      // (G) on the host
  bool only_polygons = true;  // no object has run lengths, and none is without a shape
};

/// The tables of all images' truths: Truth::pack if they have it, else made now.
std::shared_ptr<const TruthPack> pack_of(const std::vector<Truth>& truths);

}  // namespace millrace
