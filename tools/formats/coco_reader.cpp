#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/coco/data/check_records.h"
#include "millrace/coco/data/records.h"
#include "millrace/tools/formats/faults.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/format.h"

namespace millrace::formats {
namespace {

constexpr coco::FindingKind kCocoImageMissing{"image-missing", coco::Severity::error,
                                              "images without a file",
                                              "they are skipped with their objects"};
constexpr std::string_view kInstances = "instances_", kKeypoints = "person_keypoints_";

/// Returns true if a file begins like a JSON object with COCO's sections.
bool begins_as_coco(const std::filesystem::path& file) {
  const auto head = beginning_of(file, 16384);
  const auto first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string::npos || head[first] != '{') return false;
  const auto has = [&](std::string_view key) { return head.find(key) != std::string::npos; };
  if (has("\"shapes\"") || has("\"_via_settings\"") || has("\"segments_info\"")) return false;
  return has("\"images\"") || has("\"annotations\"") || has("\"categories\"") ||
         has("\"licenses\"");
}

/// Returns the annotation files of a folder: those of instances, without captions and similar.
std::vector<RelativePath> annotation_files(const Listing& folder) {
  constexpr std::size_t kMostFiles = 50;  // a folder with more files has one per image
  std::vector<RelativePath> files;
  for (const auto& place : folder.folders()) {
    const auto names = folder.files(place, ".json");
    if (names.size() > kMostFiles) continue;
    const bool has_instances =
        std::ranges::any_of(names, [](const auto& name) { return name.starts_with(kInstances); });
    for (const auto& name : names) {
      const bool is_other = std::ranges::any_of(
          std::initializer_list<const char*>{"captions_", "panoptic_", "image_info_", "stuff_"},
          [&](const char* start) { return name.starts_with(start); });
      if (is_other || (has_instances && name.starts_with(kKeypoints))) continue;
      const auto file = joined_path(place, name);
      if (begins_as_coco(folder.path(file))) files.push_back(file);
    }
  }
  return files;
}

/// Returns the split of a file: the part after "instances_", otherwise the split named by the file
/// or a folder, otherwise the stem.
std::string split_of_file(const RelativePath& file, bool is_only) {
  const auto stem = stem_of(file);
  for (const auto start : {kInstances, kKeypoints})
    if (stem.starts_with(start)) return stem.substr(start.size());
  if (auto name = split_in_words(stem)) return *std::move(name);
  if (const auto name = split_of_path(file); name != kWhole) return name;
  return is_only ? kWhole : stem;
}

/// Returns the folder that contains the most of the first images; among equal ones, the first of
/// the usual places.
RelativePath image_folder(const Listing& folder, const coco::Dataset& data,
                          const RelativePath& file, const std::string& split) {
  constexpr std::size_t kLookedAt = 50;
  const auto beside = folder_of(file), above = folder_of(beside);
  std::vector<RelativePath> candidates = {joined_path(above, split),
                                          beside,
                                          joined_path(above, "images/" + split),
                                          joined_path(beside, split),
                                          joined_path(beside, "images"),
                                          joined_path(above, "images"),
                                          above};
  for (const auto& one : folder.folders()) candidates.push_back(one);
  RelativePath best;
  std::size_t most = 0;
  for (const auto& candidate : candidates) {
    if (!folder.has_folder(candidate)) continue;
    std::size_t found = 0;
    for (const auto& image : data.images.first(std::min(kLookedAt, data.images.size())))
      found += folder.has_file(joined_path(candidate, data.text(image.file_name))) ? 1 : 0;
    if (found > most) best = candidate, most = found;
  }
  return best;
}

}  // namespace

std::optional<std::string> detect_coco(const Listing& folder) {
  const auto files = annotation_files(folder);
  if (files.empty()) return {};
  return fmt::format("{} has the sections of COCO", files[0]);
}

std::vector<Split> read_coco(const Listing& folder, coco::Findings& findings) {
  const auto files = annotation_files(folder);
  std::vector<Split> splits;
  for (const auto& file : files) {
    const auto name = split_of_file(file, files.size() == 1);
    if (std::ranges::any_of(splits, [&](const Split& one) { return one.name == name; }))
      throw Error(fmt::format("{}: {} and another file both annotate split '{}': keep one of them",
                              folder.root().string(), file, name));
    auto data = coco::check_records(folder.path(file), findings);
    if (!data) continue;
    const auto images = image_folder(folder, *data, file, name);
    std::vector<std::size_t> there;
    for (std::size_t i = 0; i < data->images.size(); ++i) {
      const auto& image = data->images[i];
      const std::string named(data->text(image.file_name));
      const auto path = std::filesystem::path(joined_path(images, named)).lexically_normal();
      if (folder.has_file(path.generic_string()))
        there.push_back(i);
      else
        findings.add(kCocoImageMissing,
                     {.image = image.id, .file = named, .what = "named in " + file});
    }
    if (there.size() < data->images.size()) {
      std::map<std::int64_t, std::int64_t> categories;  // all categories, unchanged
      for (const auto& category : data->categories) categories[category.id] = category.id;
      data = coco::subset(*data, there, categories);
    }
    if (!data->images.empty()) splits.push_back({name, folder.path(images), std::move(data)});
  }
  if (splits.empty())
    throw Error(fmt::format("{}: no image file found that {}; {}", folder.root().string(),
                            files.empty() ? "an annotation file names" : files[0] + " names",
                            folder.counts()));
  std::ranges::stable_sort(splits, {}, [](const Split& one) {
    return one.name.starts_with("train") ? 0 : one.name.starts_with("val") ? 1 : 2;
  });
  return splits;
}

}  // namespace millrace::formats
