#include "millrace/tools/formats/files/yolo_data.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/tools/formats/files/texts.h"

namespace millrace::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostClasses = 100'000;

std::string at(const fs::path& file, const YAML::Mark& mark) {
  return mark.is_null() ? file.string() : fmt::format("{}:{}", file.string(), mark.line + 1);
}

/// Reads the nodes of a YAML file into YoloData.
class DataFile {
 public:
  DataFile(const Listing& folder, const RelativePath& place)
      : folder_(folder), place_(place), file_(folder.path(place)) {}

  YoloData read() {
    YoloData data{.file = place_};
    try {
      const auto root = YAML::Load(read_file(file_));
      if (!root.IsMap()) fail(root, "not a map of keys and values");
      data.names = names_of(root);
      data.keypoint_numbers = keypoint_numbers(root["kpt_shape"]);
      const auto base = root["path"] ? text(root["path"], "path") : std::string();
      for (const auto* split : {"train", "val", "validation", "test"})
        if (const auto node = root[split]; node && !node.IsNull())
          data.splits[*split_name(split)] = places_of(node, split, base);
    } catch (const YAML::Exception& problem) {
      throw Error(fmt::format("{}: {}", at(file_, problem.mark), problem.msg));
    }
    return data;
  }

 private:
  [[noreturn]] void fail(const YAML::Node& node, const std::string& why) const {
    throw Error(fmt::format("{}: {}", at(file_, node.Mark()), why));
  }

  std::string text(const YAML::Node& node, std::string_view key) const {
    if (!node.IsScalar()) fail(node, fmt::format("'{}' is not a string", key));
    return node.Scalar();
  }

  std::vector<std::string> names_of(const YAML::Node& root) const {
    std::vector<std::string> names;
    const auto node = root["names"];
    if (!node || node.IsNull()) return names;
    if (node.IsSequence()) {
      for (const auto& one : node) names.push_back(text(one, "names"));
    } else if (node.IsMap()) {
      for (const auto& one : node) {
        const auto number = integer_in(text(one.first, "names"));
        if (!number || *number < 0 || static_cast<std::size_t>(*number) >= kMostClasses)
          fail(one.first, fmt::format("'names' has the key '{}', which is not a class number",
                                      one.first.Scalar()));
        const auto position = static_cast<std::size_t>(*number);
        if (position >= names.size()) names.resize(position + 1);
        names[position] = text(one.second, "names");
      }
      for (std::size_t k = 0; k < names.size(); ++k)
        if (names[k].empty()) names[k] = fmt::format("class {}", k);
    } else {
      fail(node, "'names' is neither a list nor a map");
    }
    if (const auto count = root["nc"]; count && count.IsScalar())
      if (const auto wanted = integer_in(count.Scalar());
          wanted && *wanted != static_cast<long long>(names.size()))
        fail(count, fmt::format("'nc' is {}, but 'names' has {} classes", *wanted, names.size()));
    return names;
  }

  std::size_t keypoint_numbers(const YAML::Node& node) const {
    if (!node || !node.IsSequence() || node.size() != 2) return 0;
    const auto count = integer_in(text(node[0], "kpt_shape")),
               each = integer_in(text(node[1], "kpt_shape"));
    if (!count || !each || *count < 0 || *each < 0 || *count > 10'000 || *each > 3) return 0;
    return static_cast<std::size_t>(*count * *each);
  }

  std::vector<RelativePath> places_of(const YAML::Node& node, std::string_view split,
                                      const std::string& base) const {
    std::vector<RelativePath> places;
    const auto add = [&](const YAML::Node& one) {
      const auto wanted = text(one, split);
      if (wanted.empty()) return;
      if (const auto place = find(wanted, base))
        places.push_back(*place);
      else if (split != "test")  // often listed although it does not exist
        fail(one, fmt::format("'{}' is '{}', which was not found in {}", split, wanted,
                              folder_.root().string()));
    };
    if (node.IsSequence())
      for (const auto& one : node) add(one);
    else
      add(node);
    return places;
  }

  /// Finds a path of the file in the folder; nullopt if it does not exist. Ultralytics' paths are
  /// relative to `path`; Roboflow writes "../train/..." for a folder beside the file.
  std::optional<RelativePath> find(const std::string& wanted, const std::string& base) const {
    const auto beside = fs::path(place_).parent_path();
    auto bare = fs::path(wanted).lexically_normal();
    fs::path inside;
    for (const auto& part : bare)
      if (part != ".." && part != "/") inside /= part;
    for (const auto& candidate :
         {beside / base / wanted, beside / wanted, beside / inside, fs::path(base) / wanted}) {
      auto path = candidate.lexically_normal();
      if (path.is_absolute()) path = path.lexically_relative(fs::absolute(folder_.root()));
      auto place = path.generic_string();
      if (place.ends_with('/')) place.pop_back();
      if (place == ".") place.clear();
      if (folder_.has_folder(place) || folder_.has_file(place)) return place;
    }
    return {};
  }

  const Listing& folder_;
  const RelativePath place_;
  const fs::path file_;
};

/// Returns true if a line of the file begins with "names:" or "nc:", as in data.yaml.
bool looks_like_data(const fs::path& file) {
  constexpr std::uint64_t kMost = 1 << 20;
  try {
    const auto text = read_file(file, {.max_bytes = kMost});
    return std::ranges::any_of(lines_of(text), [](const TextLine& line) {
      return line.text.starts_with("names:") || line.text.starts_with("nc:");
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<RelativePath> yolo_yaml_files(const Listing& folder) {
  std::vector<RelativePath> found;
  for (const auto& name : folder.files(""))
    if (const auto extension = extension_of(name);
        (extension == ".yaml" || extension == ".yml") && looks_like_data(folder.path(name)))
      found.push_back(name);
  return found;
}

YoloData read_yolo_data(const Listing& folder) {
  const auto yaml = yolo_yaml_files(folder);
  if (yaml.size() > 1)
    throw Error(fmt::format("{}: {} and {} both describe a YOLO data set: keep one of them",
                            folder.root().string(), yaml[0], yaml[1]));
  YoloData data;
  if (!yaml.empty()) data = DataFile(folder, yaml[0]).read();
  if (!data.names.empty()) return data;
  std::vector<RelativePath> lists = {"classes.txt",
                                     "labels/classes.txt",
                                     "obj.names",
                                     "names.txt",
                                     "labels.txt",
                                     "train/labels/classes.txt",
                                     "labels/train/classes.txt"};
  for (auto& name : folder.files("", ".names")) lists.push_back(std::move(name));
  const auto found =
      std::ranges::find_if(lists, [&](const RelativePath& list) { return folder.has_file(list); });
  if (found == lists.end()) return data;
  data.file = *found;
  data.names = names_in(folder.path(*found));
  return data;
}

}  // namespace millrace::formats
