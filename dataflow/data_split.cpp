#include "dataflow/data_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/text.h"
#include "coco/annotation_cache.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

void require(bool there, const std::string& what, const fs::path& path, const std::string& remedy) {
  if (!there) throw ConfigError(fmt::format("no {} '{}': {}", what, path.string(), remedy));
}

const coco::Category& category_named(const std::string& name, const coco::Dataset& dataset) {
  std::vector<std::string> known;
  for (const auto& category : dataset.categories) {
    if (dataset.text(category.name) == name) return category;
    known.emplace_back(dataset.text(category.name));
  }
  throw ConfigError(fmt::format("data.classes: {} has no category '{}'{}", dataset.source, name,
                                suggestion(name, known)));
}

}  // namespace

DataSplit make_split(std::shared_ptr<const coco::Dataset> annotations, fs::path images,
                     const std::vector<std::string>& classes) {
  DataSplit split{std::move(annotations), std::move(images), {}, {}};
  const auto add = [&split](const coco::Category& category) {
    const auto name = split.annotations->text(category.name);
    if (std::ranges::count(split.category_ids, category.id))
      throw ConfigError(fmt::format("data.classes: '{}' is there twice", name));
    split.classes.emplace_back(name);
    split.category_ids.push_back(category.id);
  };
  if (classes.empty()) {
    for (const auto& category : split.annotations->categories) add(category);
  } else {
    for (const auto& name : classes) add(category_named(name, *split.annotations));
  }
  return split;
}

SplitPaths find_split(const std::string& root_name, const std::string& name) {
  const fs::path root = root_name;
  SplitPaths paths{root / "annotations" / ("instances_" + name + ".json"), root / name};
  require(fs::is_directory(root), "data folder", root,
          "set data.root to a folder in COCO's layout, or make one with `trainer sample`");
  require(fs::is_regular_file(paths.annotations), "annotation file", paths.annotations,
          "set data.train and data.val to the names of the splits in data.root");
  require(
      fs::is_directory(paths.images), "image folder", paths.images,
      fmt::format("put the images that '{}' names there", paths.annotations.filename().string()));
  return paths;
}

void check_class_names(const std::vector<std::string>& classes) {
  for (const auto& name : classes)
    if (std::ranges::count(classes, name) > 1)
      throw ConfigError(fmt::format("data.classes: '{}' is there twice", name));
}

std::vector<std::int64_t> find_categories(const coco::Dataset& annotations,
                                          const std::vector<std::string>& names) {
  std::vector<std::int64_t> ids;
  for (const auto& name : names) {
    const auto found =
        std::ranges::find(annotations.categories, name,
                          [&](const coco::Category& one) { return annotations.text(one.name); });
    ids.push_back(found == annotations.categories.end() ? kNoCategory : found->id);
  }
  return ids;
}

DataSplit open_split(const DataOptions& options, const std::string& name) {
  const auto paths = find_split(options.root, name);
  return make_split(coco::read_dataset_cached(paths.annotations), paths.images, options.classes);
}

}  // namespace millrace
