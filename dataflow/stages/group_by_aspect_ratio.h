#pragma once

#include <cstddef>
#include <string_view>

#include "dataflow/data_options.h"
#include "dataflow/sample.h"

namespace millrace {

/// The key that batches images of like shape: how many of the bounds its width / height passes.
struct GroupByAspectRatio {
  static constexpr std::string_view kName = "group_by_aspect_ratio";
  Options::Reals bounds = {1.0};  // width / height; one bound of 1 parts wide from tall
  std::int64_t batch_size = 4;

  static GroupByAspectRatio from(const DataOptions& data) {
    return {data.aspect_grouping ? Options::Reals{1.0} : Options::Reals{}, data.batch_size};
  }

  std::size_t groups() const { return bounds.size() + 1; }
  std::size_t operator()(const Sample& sample) const;

  void describe(Options& o) {
    o.add("bounds", bounds, "ratios of width to height that part the groups; none: one group",
          {.min = 0});
    o.add("batch_size", batch_size, "images of a batch", {.min = 1, .unit = "images"});
  }
};

}  // namespace millrace
