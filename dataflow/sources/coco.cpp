// The source "coco": a split of a data set in COCO's layout.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/sources/detection_sources.h"

namespace millrace {
namespace {

struct CocoOptions {
  std::string root, split;
  bool filter_empty = true;

  void describe(Options& o) {
    o.add("root", root, "folder of the data set").follows("data.root");
    o.add("split", split, "name of the split").follows("data.train");
    o.add("filter_empty", filter_empty, "leave out images without a usable object")
        .follows("data.filter_empty");
  }
};

/// Opens a split and numbers objects by the names of all classes, some of which this data set may
/// lack.
SourcePtr<Sample> open_coco(const CocoOptions& options, const SourceContext& context) {
  auto data = context.data;
  if (data.root != options.root) data.sample.reset();
  data.root = options.root;
  const auto paths = find_split(data, options.split);
  const auto annotations = read_annotations(paths.annotations, data);
  check_category_names(*annotations, context.classes);
  DataSplit split{annotations, paths.images, context.classes,
                  find_categories(*annotations, context.classes)};
  if (std::ranges::count(split.category_ids, kNoCategory) == std::ssize(split.category_ids)) {
    std::vector<std::string> own;
    for (const auto& category : annotations->categories)
      own.emplace_back(annotations->text(category.name));
    const auto why = fmt::format("{} has none of the classes {}; it has {}", annotations->source,
                                 joined(context.classes), own.empty() ? "none" : joined(own));
    if (options.filter_empty) throw ConfigError(why);
    if (!own.empty()) log_warning("{}; all its images are used as images without objects", why);
  }
  return open_source(std::move(split), options.filter_empty);
}

MILLRACE_REGISTER(register_source<CocoOptions>("coco", "annotated images in COCO's layout",
                                               open_coco));

}  // namespace
}  // namespace millrace
