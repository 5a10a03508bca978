#include "millrace/dataflow/detection/count_objects.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <utility>
#include <variant>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

void count(const Sample& sample, ObjectCounts& counts) {
  ++counts.samples;
  const auto& objects = sample.objects;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects.crowd[i]) continue;
    ++counts.objects;
    if (!std::holds_alternative<std::monostate>(objects.segmentations[i])) continue;
    if (++counts.without_shape == 1) counts.first_without_shape = sample.path;
  }
}

ObjectCounts merged(ObjectCounts earlier, const ObjectCounts& later) {
  earlier.samples += later.samples;
  earlier.objects += later.objects;
  if (earlier.without_shape == 0) earlier.first_without_shape = later.first_without_shape;
  earlier.without_shape += later.without_shape;
  return earlier;
}

}  // namespace

ObjectCounts count_objects(const Source<Sample>& source) {
  using Range = tbb::blocked_range<std::int64_t>;
  return tbb::parallel_reduce(
      Range(0, source.size()), ObjectCounts(),
      [&](const Range& range, ObjectCounts part) {
        for (auto i = range.begin(); i < range.end(); ++i) try {
            count(source.about(i), part);
          } catch (const DataError&) {  // the flow tells of it, as data.on_error says
            ++part.samples;
          }
        return part;
      },
      merged);
}

}  // namespace millrace
