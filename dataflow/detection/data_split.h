// One split of a data set on disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/dataflow/detection/data_options.h"

namespace millrace {

/// Annotations, the folder of the images, and the categories that count, in order; an id without a
/// category is a class without objects. Cheap to copy.
struct DataSplit {
  std::shared_ptr<const coco::Dataset> annotations;
  std::filesystem::path images;            // folder
  std::vector<std::string> classes;        // names; class k is the k-th
  std::vector<std::int64_t> category_ids;  // of class k, as results files name it
};

/// The paths of a split: `<root>/annotations/instances_<name>.json` and `<root>/<name>/`. Throws
/// ConfigError with what is missing and what to do.
struct SplitPaths {
  std::filesystem::path annotations, images;
};
SplitPaths find_split(const DataSetOptions& options, const std::string& name);

/// No category has this id.
inline constexpr std::int64_t kNoCategory = INT64_MIN;
/// The ids of the categories with these names: kNoCategory for none, the first of several.
std::vector<std::int64_t> find_categories(const coco::Dataset& annotations,
                                          const std::vector<std::string>& names);
/// Throws Error naming the file if two of its categories have one of these names.
void check_category_names(const coco::Dataset& annotations, const std::vector<std::string>& names);

/// `coco::read_dataset_cached`; unless `on_error` is "fail", annotations and images that break its
/// rules are left out, with a warning that counts them and names the first few. Throws Error if
/// a larger share of either than `max_skipped` does, or the file cannot be read at all.
std::shared_ptr<const coco::Dataset> read_annotations(const std::filesystem::path& file,
                                                      const FaultOptions& options);

/// Finds the split and reads its annotations. Throws as these, and ConfigError naming a class that
/// is unknown and the nearest name.
DataSplit open_split(const DataOptions& options, const std::string& name);

/// The same for annotations in memory. Throws Error if two categories that count have one name.
DataSplit make_split(std::shared_ptr<const coco::Dataset> annotations, std::filesystem::path images,
                     const std::vector<std::string>& classes);

}  // namespace millrace
