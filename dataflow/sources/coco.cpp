// use = "coco": a split of a data set in COCO's layout.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/text.h"
#include "dataflow/data_split.h"
#include "dataflow/detection_source.h"
#include "dataflow/detection_sources.h"

namespace millrace {
namespace {

struct CocoOptions {
  std::string root, split;
  bool filter_empty = true;

  static CocoOptions from(const DataOptions& data) {
    return {data.root, data.train, data.filter_empty};
  }

  void describe(Options& o) {
    o.add("root", root, "folder of the data set; left out: data.root");
    o.add("split", split, "its split; left out: data.train");
    o.add("filter_empty", filter_empty,
          "leave out images without a usable object; left out: data.filter_empty");
  }
};

/// Numbers objects by the names of all classes, of which this data set need not have every one.
SourcePtr<Sample> open(const CocoOptions& options, const SourceContext& context) {
  auto data = context.data;
  data.root = options.root;
  data.classes.clear();
  auto split = open_split(data, options.split);
  const auto own = std::exchange(split.classes, context.classes);
  split.category_ids = find_categories(*split.annotations, split.classes);
  if (std::ranges::count(split.category_ids, kNoCategory) == std::ssize(split.category_ids))
    throw ConfigError(fmt::format("{} has none of the classes {}; it has {}",
                                  split.annotations->source, joined(context.classes), joined(own)));
  return open_source(std::move(split), options.filter_empty);
}

const bool registered =
    register_source<CocoOptions>("coco", "annotated images in COCO's layout", open);

}  // namespace
}  // namespace millrace
