#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/shape_buckets.h"

namespace millrace {

/// The key that batches images of like shape: how many of the bounds width / height of the image as
/// it was annotated passes, whatever becomes of it on its way (as detectron2 and torchvision
/// group). Of unknown size: none.
struct GroupByAspectRatio {
  static constexpr std::string_view kName = "group_by_aspect_ratio";
  static constexpr std::int64_t kShapesSeen = 4096;
  Options::Reals bounds = {1.0};  // width / height; one bound of 1 parts wide from tall
  std::int64_t buckets = 0;       // > 0: `fit` chooses the bounds
  std::int64_t batch_size = 4;

  /// Where `buckets` asks for it, chooses bounds for the least padding of the images of `source`
  /// (of some thousands of them, evenly spread).
  template <class Source>
  void fit(const Source& source) {
    if (buckets == 0) return;
    const auto step = std::max<std::int64_t>(1, source.size() / kShapesSeen);
    std::vector<cv::Size> shapes;  // those that are known before decoding
    for (std::int64_t i = 0; i < source.size(); i += step) {
      const auto sample = source.about(i);
      if (sample.width > 0) shapes.emplace_back(sample.width, sample.height);
    }
    bounds = ratio_bounds(shapes, static_cast<std::size_t>(buckets));
  }

  std::size_t groups() const { return bounds.size() + 1; }
  std::size_t operator()(const Sample& sample) const;

  void describe(Options& o) {
    o.add("bounds", bounds, "ratios of width to height that part the groups; none: one group",
          {.min = 0});
    o.add("buckets", buckets,
          "> 0: so many groups instead, their bounds chosen from the data set for the least "
          "padding",
          {.min = 0, .max = 64});
    o.add("batch_size", batch_size,
          "images per batch; another number than data.batch_size, by which "
          "the learning rate is scaled, is an error",
          {.min = 1, .max = 65536, .unit = "images"});
  }
};

}  // namespace millrace
