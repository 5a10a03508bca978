// A split as a detector sees it, and the distributions of its properties.
#pragma once

#include <cstdint>
#include <opencv2/core/mat.hpp>
#include <span>
#include <string>
#include <vector>

#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/object_statistics.h"

namespace millrace::cli {

/// A split, or the output of the training pipeline, at the size that a detector sees.
struct SplitView {
  std::string name;         // "train2017"
  std::string seen;         // resize rule: "shorter side 800, longer at most 1333 pixels"
  SeenData data;            // images and objects
  bool is_sampled = false;  // `data` are from batches, not from annotations
  std::vector<ObjectCoverage> coverage;  // of data.objects; empty if anchors are not known
};

/// The distribution of one property of images or objects.
struct Distribution {
  std::string id;     // stable, for scripts: "object_size"
  std::string title;  // "Sizes of objects"
  std::string unit;   // label of the axis: "pixels, square root of the box's area"
  Histogram histogram;
  double max = 0;  // maximum, which ends the last bin
  double median = 0;
  std::string meaning;  // its quantiles in a sentence
};

/// Returns the distributions that the data allow: object_size, object_ratio, objects_per_image,
/// image_size, anchor_iou.
std::vector<Distribution> distributions(const SplitView& split);

/// A distribution's bins with both edges of each: values below the first edge (which cannot occur)
/// are left out, and the maximum closes the last bin.
struct BoundedBins {
  std::vector<double> edges;
  std::vector<std::int64_t> counts;  // one fewer than edges
};
BoundedBins bounded_bins(const Distribution& one);

/// Draws distributions into one picture, two side by side. (H, W, 3) 8-bit RGB.
cv::Mat histogram_picture(std::span<const Distribution> all);

}  // namespace millrace::cli
