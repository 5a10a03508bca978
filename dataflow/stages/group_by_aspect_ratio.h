#pragma once

#include <cstddef>
#include <opencv2/core/types.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

/// Returns the bounds (ratios of width to height, ascending) that divide `shapes` into at most
/// `buckets` groups with the least padding, if every image were resized to one shorter side and
/// padded to the largest of its group. The partition is optimal. Pure. REQUIRES: buckets > 0, no
/// empty shape.
std::vector<double> ratio_bounds(std::span<const cv::Size> shapes, std::size_t buckets);

/// A key that batches images of similar shape: the number of bounds that the ratio of width to
/// height exceeds. It uses the annotated size, whatever later stages do (as in detectron2 and
/// torchvision). The key of an image of unknown size is 0.
struct GroupByAspectRatio {
  static constexpr std::string_view kName = "group_by_aspect_ratio";
  Options::Reals bounds = {1.0};  // width / height; one bound of 1 separates wide from tall
  std::int64_t buckets = 0;       // > 0: `fit` chooses the bounds
  std::int64_t batch_size = 4;

  /// Chooses bounds for the least padding of the images of `source`, from some thousands of them,
  /// evenly spread, if `buckets` > 0.
  void fit(const Source<Sample>& source);

  std::size_t groups() const { return bounds.size() + 1; }
  std::size_t operator()(const Sample& sample) const;

  /// Returns the bounds for a value of data.aspect_grouping.
  static Config bounds_of(const Config& grouping) {
    return {Config::Array(std::get<bool>(grouping.data) ? 1 : 0, Config(1.0, {})), {}};
  }

  void describe(Options& o) {
    o.add("bounds", bounds, "ratios of width to height that separate the groups; empty = one group",
          {.min = 0})
        .follows("data.aspect_grouping", bounds_of);
    o.add("buckets", buckets,
          "number of groups with bounds chosen from the data set for minimal padding; 0 = use "
          "bounds",
          {.min = 0, .max = 64})
        .follows("data.shape_buckets");
    o.add("batch_size", batch_size,
          "images per batch; must equal data.batch_size, which scales the learning rate",
          {.min = 1, .max = 65536, .unit = "images"})
        .follows("data.batch_size");
  }
};

}  // namespace millrace
