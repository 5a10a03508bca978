#include "millrace/dataflow/detection/data_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/coco/data/annotation_cache.h"
#include "millrace/coco/data/readers.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

void require(bool there, const std::string& what, const fs::path& path, const std::string& remedy) {
  if (!there) throw ConfigError(fmt::format("no {} '{}': {}", what, path.string(), remedy));
}

using CategoriesByName = std::unordered_map<std::string_view, const coco::Category*>;

/// Returns the first category of each name.
CategoriesByName categories_by_name(const coco::Dataset& dataset) {
  CategoriesByName all;
  for (const auto& category : dataset.categories)
    all.try_emplace(dataset.text(category.name), &category);
  return all;
}

const coco::Category& category_named(const std::string& name, const CategoriesByName& all,
                                     const coco::Dataset& dataset) {
  if (const auto found = all.find(name); found != all.end()) return *found->second;
  std::vector<std::string> known;
  for (const auto& category : dataset.categories) known.emplace_back(dataset.text(category.name));
  throw ConfigError(fmt::format("data.classes: {} has no category '{}'{}", dataset.source, name,
                                suggestion(name, known)));
}

/// Returns a sentence on how to get a missing data folder.
std::string remedy_for_root(const DataSetOptions& options) {
  if (!options.sample)
    return fmt::format(
        "set data.root to a folder in COCO's layout, or make the sample data set with `trainer "
        "sample --out {}`",
        options.root);
  const auto& [train, val, seed] = *options.sample;
  return fmt::format(
      "`trainer run` makes the sample data set there, as does `trainer sample --out {} --train {} "
      "--val {} --seed {}`; or set data.root to a folder in COCO's layout",
      options.root, train, val, seed);
}

constexpr std::size_t kExamples = 3;  // maximum that a message lists

/// The faults in the records of one section.
struct Faults {
  std::string_view noun;  // "annotation"
  std::size_t count = 0;
  std::vector<std::string> examples = {};

  void add(const std::string& example) {
    if (++count <= kExamples) examples.push_back(example);
  }
  /// Throws Error if more than the fraction `most` is left out, given that `kept` remain; else
  /// warns.
  void tell(const std::string& file, std::size_t kept, double most) const {
    if (count == 0) return;
    const auto text = fmt::format("{}: {}{}", counted(static_cast<long long>(count), noun),
                                  joined(examples, "; "),
                                  count > kExamples ? "; `trainer doctor` lists all" : "");
    const auto all = count + kept;
    if (static_cast<double>(count) > std::ceil(most * static_cast<double>(all)))
      throw Error(fmt::format("{}: too many of {} are unusable (data.max_skipped = {}): {}", file,
                              counted(static_cast<long long>(all), noun), most, text));
    log_warning("{}: skipped {}", file, text);
  }
};

std::string text(const coco::RecordFault& fault, std::string_view noun) {
  const auto name = fault.id ? fmt::format("{} {}", noun, *fault.id)
                             : fmt::format("{}[{}]", fault.section, fault.index);
  return fmt::format("{}, byte {}: {}", name, fault.byte, fault.why);
}

}  // namespace

std::shared_ptr<const coco::Dataset> read_annotations(const std::filesystem::path& file,
                                                      const FaultOptions& options) {
  if (options.on_error == OnError::fail) return coco::read_dataset_cached(file);
  try {
    return coco::read_dataset_cached(file);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error&) {  // rethrown below unless only records are at fault
    const auto name = file.string();
    Faults annotations{"annotation"}, images{"image"};
    const auto data = coco::read_valid_records(
        file, {.unreadable =
                   [&](const coco::RecordFault& fault) {
                     if (fault.section == "categories")
                       throw Error(fmt::format("{}: {}", name, text(fault, "category")));
                     auto& faults = fault.section == "images" ? images : annotations;
                     faults.add(text(fault, faults.noun));
                   },
               .on_conflict =
                   [&](const coco::RecordConflict& problem) {
                     if (!problem.annotation)  // it is unclear which of two records is correct
                       throw Error(fmt::format("{}: {}", name, problem.what()));
                     annotations.add(fmt::format("annotation {}: {}", problem.id, problem.why));
                   }});
    images.tell(name, data->images.size(), options.max_skipped);
    annotations.tell(name, data->annotations.size(), options.max_skipped);
    return data;
  }
}

DataSplit make_split(std::shared_ptr<const coco::Dataset> annotations, fs::path images,
                     const std::vector<std::string>& classes) {
  DataSplit split{std::move(annotations), std::move(images), {}, {}};
  const auto add = [&split](const coco::Category& category) {
    split.classes.emplace_back(split.annotations->text(category.name));
    split.category_ids.push_back(category.id);
  };
  if (classes.empty()) {
    for (const auto& category : split.annotations->categories) add(category);
  } else {
    const auto all = categories_by_name(*split.annotations);
    for (const auto& name : classes) add(category_named(name, all, *split.annotations));
  }
  check_category_names(*split.annotations, split.classes);
  return split;
}

SplitPaths find_split(const DataSetOptions& options, const std::string& name) {
  const fs::path root = options.root;
  SplitPaths paths{root / "annotations" / ("instances_" + name + ".json"), root / name};
  require(fs::is_directory(root), "data folder", root, remedy_for_root(options));
  require(fs::is_regular_file(paths.annotations), "annotation file", paths.annotations,
          "set data.train and data.val to the names of the splits in data.root");
  require(fs::is_directory(paths.images), "image folder", paths.images,
          fmt::format("put the images named in '{}' there", paths.annotations.filename().string()));
  return paths;
}

std::vector<std::int64_t> find_categories(const coco::Dataset& annotations,
                                          const std::vector<std::string>& names) {
  std::vector<std::int64_t> ids;
  const auto all = categories_by_name(annotations);
  for (const auto& name : names) {
    const auto found = all.find(name);
    ids.push_back(found == all.end() ? kNoCategory : found->second->id);
  }
  return ids;
}

void check_category_names(const coco::Dataset& annotations, const std::vector<std::string>& names) {
  std::map<std::string_view, std::int64_t> ids;
  for (const auto& category : annotations.categories) {
    const auto name = annotations.text(category.name);
    const auto [first, is_new] = ids.try_emplace(name, category.id);
    if (!is_new && std::ranges::count(names, name) > 0)
      throw Error(
          fmt::format("{}: categories {} and {} are both named '{}', but names must be unique; "
                      "rename one of them or merge them",
                      annotations.source, first->second, category.id, name));
  }
}

DataSplit open_split(const DataOptions& options, const std::string& name) {
  const auto paths = find_split(options, name);
  return make_split(read_annotations(paths.annotations, options), paths.images, options.classes);
}

}  // namespace millrace
