#include "millrace/dataflow/stages/group_by_aspect_ratio.h"

#include <algorithm>

#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

Stage grouping(const Config& table, const DetectionContext& context) {
  auto key = read_options<GroupByAspectRatio>(table, {"type"});
  if (!context.only_checked) key.fit(*context.source);
  return group_stage<Sample, Sample>(std::string(key.kName), key, key.groups(),
                                     static_cast<std::size_t>(key.batch_size));
}

MILLRACE_REGISTER(detection_stages().add<GroupByAspectRatio>(
    std::string(GroupByAspectRatio::kName), "collects batches of images of like shape", grouping));

}  // namespace

std::size_t GroupByAspectRatio::operator()(const Sample& sample) const {
  const double width = sample.width, height = sample.height;
  return static_cast<std::size_t>(std::ranges::count_if(
      bounds, [ratio = width / height](double bound) { return ratio > bound; }));
}

}  // namespace millrace
