#include "millrace/dataflow/stages/filter.h"

#include <algorithm>

#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {

MILLRACE_REGISTER(
    register_stage<Filter>("drops images that are too small or have too few objects"));

bool Filter::operator()(const Sample& sample) const {
  const auto size =
      sample.image.empty() ? cv::Size(sample.width, sample.height) : sample.image.size();
  if (std::min(size.width, size.height) < min_side) return false;
  std::int64_t objects = 0;
  for (std::size_t i = 0; i < sample.objects.size(); ++i) {
    const auto& box = sample.objects.boxes[i];
    objects += !sample.objects.crowd[i] && std::min(box.width(), box.height()) >= min_object_side;
  }
  return objects >= min_objects;
}

}  // namespace millrace
