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

/// What is annotated, where the images lie and which categories count, in which order; an id that
/// the annotations do not have stands for a class without objects. Cheap to copy.
struct DataSplit {
  std::shared_ptr<const coco::Dataset> annotations;
  std::filesystem::path images;            // folder
  std::vector<std::string> classes;        // names; class k is the k-th
  std::vector<std::int64_t> category_ids;  // of class k, as results files name it
};

/// Where a split lies: `<root>/annotations/instances_<name>.json` and `<root>/<name>/`. Throws
/// ConfigError saying what is missing and what to do.
struct SplitPaths {
  std::filesystem::path annotations, images;
};
SplitPaths find_split(const DataSetOptions& options, const std::string& name);

/// Throws ConfigError where data.classes has a name twice.
void check_class_names(const std::vector<std::string>& classes);

/// No category has this id.
inline constexpr std::int64_t kNoCategory = INT64_MIN;
/// The ids of the categories with these names; kNoCategory where there is none, the first where
/// there are several.
std::vector<std::int64_t> find_categories(const coco::Dataset& annotations,
                                          const std::vector<std::string>& names);
/// Throws Error naming the file where two of its categories have one of these names: classes are
/// told by them.
void check_category_names(const coco::Dataset& annotations, const std::vector<std::string>& names);

/// Opens `<root>/annotations/instances_<name>.json` and `<root>/<name>/`. Unless `on_error` is
/// "fail", annotations and images that break the rules of `coco::read_dataset` are left out with a
/// warning, up to `max_skipped` of each. Throws ConfigError saying what is missing and what to do,
/// or which class is unknown and the nearest name; Error for a bad file.
DataSplit open_split(const DataOptions& options, const std::string& name);

/// The same for annotations that are in memory. Throws Error where two categories that count have
/// one name.
DataSplit make_split(std::shared_ptr<const coco::Dataset> annotations, std::filesystem::path images,
                     const std::vector<std::string>& classes);

}  // namespace millrace
