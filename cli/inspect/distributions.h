// How the figures of a split are distributed.
#pragma once

#include <string>
#include <vector>

#include "millrace/cli/inspect/split_view.h"
#include "millrace/tools/data/object_statistics.h"

namespace millrace::cli {

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

}  // namespace millrace::cli
