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

/// Annotations, the folder of the images, and the categories in order of class; an id without a
/// category is a class without objects. Cheap to copy.
struct DataSplit {
  std::shared_ptr<const coco::Dataset> annotations;
  std::filesystem::path images;            // folder
  std::vector<std::string> classes;        // names; class k is the k-th
  std::vector<std::int64_t> category_ids;  // of class k, as results files store it
};

/// Paths of a split: `<root>/annotations/instances_<name>.json` and `<root>/<name>/`.
struct SplitPaths {
  std::filesystem::path annotations, images;
};
/// Returns the paths of split `name`. Throws ConfigError with the missing path and a remedy.
SplitPaths find_split(const DataSetOptions& options, const std::string& name);

/// Marks a class without a category.
inline constexpr std::int64_t kNoCategory = INT64_MIN;
/// Returns the ids of the categories with these names: kNoCategory for an unknown name, the first
/// id of duplicates.
std::vector<std::int64_t> find_categories(const coco::Dataset& annotations,
                                          const std::vector<std::string>& names);
/// Throws Error with the file if two of its categories share one of these names.
void check_category_names(const coco::Dataset& annotations, const std::vector<std::string>& names);

/// Reads annotations as `coco::read_dataset_cached`. Unless `on_error` is "fail", invalid
/// annotations and images are left out, with a warning that counts them and lists the first few.
/// Throws Error if their fraction exceeds `max_skipped`, or the file is unreadable.
std::shared_ptr<const coco::Dataset> read_annotations(const std::filesystem::path& file,
                                                      const FaultOptions& options);

/// Finds the split and reads its annotations. Throws as find_split and read_annotations, and
/// ConfigError with an unknown class and the most similar name.
DataSplit open_split(const DataOptions& options, const std::string& name);

/// Makes a split of annotations in memory. Throws Error if two categories to detect have one name.
DataSplit make_split(std::shared_ptr<const coco::Dataset> annotations, std::filesystem::path images,
                     const std::vector<std::string>& classes);

}  // namespace millrace
