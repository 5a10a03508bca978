// A split as a detector sees it, and how its figures are distributed.
#pragma once

#include <cstdint>
#include <opencv2/core/mat.hpp>
#include <span>
#include <string>
#include <vector>

#include "millrace/tools/data/anchor_coverage.h"
#include "millrace/tools/data/object_statistics.h"

namespace millrace::cli {

/// One split, or what training reads, at the size that a detector sees.
struct SplitView {
  std::string name;  // "train2017"
  std::string seen;  // how images become that size: "shorter side 800, longer at most 1333 pixels"
  SeenData data;     // of which objects are counted
  bool is_sampled = false;               // `data` are images of batches, not the annotations
  std::vector<ObjectCoverage> coverage;  // of data.objects; empty: no anchors are known
};

/// The distribution of one figure.
struct Distribution {
  std::string id;     // for scripts: "object_size"
  std::string title;  // "Sizes of objects"
  std::string unit;   // what the axis says: "pixels, square root of the box's area"
  Histogram histogram;
  double most = 0;  // the highest value, which ends the last bin
  double median = 0;
  std::string meaning;  // its quantiles, in a sentence
};

/// Distributions of a split, those that the data can give: object_size, object_ratio,
/// objects_per_image, image_size, anchor_iou.
std::vector<Distribution> distributions(const SplitView& split);

/// A distribution's bins between edges, the first and the last with an edge of their own: what lies
/// below the first edge (nothing) left out, and the highest value at the end.
struct ClosedBins {
  std::vector<double> edges;
  std::vector<std::int64_t> counts;  // one less than edges
};
ClosedBins closed_bins(const Distribution& one);

/// Distributions in one picture, two side by side. (H, W, 3) 8-bit RGB.
cv::Mat histogram_picture(std::span<const Distribution> all);

}  // namespace millrace::cli
