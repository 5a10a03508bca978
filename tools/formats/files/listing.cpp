#include "millrace/tools/formats/files/listing.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace::formats {
namespace {

namespace fs = std::filesystem;

/// Returns a folder's device and inode, which detect cycles of links.
std::pair<std::uint64_t, std::uint64_t> identity(const fs::path& folder) {
  struct stat facts = {};
  if (::stat(folder.c_str(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino};
}

}  // namespace

RelativePath folder_of(const RelativePath& place) {
  const auto slash = place.rfind('/');
  return slash == RelativePath::npos ? RelativePath() : place.substr(0, slash);
}

std::string name_of(std::string_view place) {
  return std::string(place.substr(place.rfind('/') + 1));
}

std::string extension_of(std::string_view place) {
  const auto name = name_of(place);
  const auto dot = name.rfind('.');
  return dot == name.npos || dot == 0 ? "" : lower_case(name.substr(dot));
}

std::string stem_of(std::string_view place) {
  const auto name = name_of(place);
  const auto dot = name.rfind('.');
  return dot == 0 ? name : name.substr(0, dot);
}

std::optional<std::string> split_name(std::string_view name) {
  constexpr std::size_t kYear = 4;  // number of digits
  const auto letters = name.find_last_not_of("0123456789") + 1;
  const bool has_year = name.size() - letters == kYear;
  const auto lower = lower_case(has_year ? name.substr(0, letters) : name);
  for (const auto* known : {"train", "training"})
    if (lower == known) return "train";
  for (const auto* known : {"val", "valid", "validation"})
    if (lower == known) return "val";
  for (const auto* known : {"test", "testing"})
    if (lower == known) return "test";
  return {};
}

std::optional<std::string> split_in_words(std::string_view name) {
  std::string word;
  for (const char one : std::string(name) + " ")
    if (std::isalnum(static_cast<unsigned char>(one)) != 0) {
      word += one;
    } else {
      if (auto split = split_name(word)) return split;
      word.clear();
    }
  return {};
}

std::vector<std::string> parts_of(const RelativePath& place) {
  std::vector<std::string> parts(1);
  for (const char one : place)
    if (one == '/')
      parts.emplace_back();
    else
      parts.back() += one;
  return parts;
}

std::string split_of_path(const RelativePath& place) {
  for (const auto& part : parts_of(folder_of(place)))
    if (const auto name = split_name(part)) return *name;
  return kWhole;
}

RelativePath joined_path(const RelativePath& folder, std::string_view name) {
  if (folder.empty()) return RelativePath(name);
  return name.empty() ? folder : fmt::format("{}/{}", folder, name);
}

Listing::Listing(fs::path root) : root_(std::move(root)) {
  std::error_code unknown;
  if (!fs::exists(root_, unknown))
    throw ConfigError(fmt::format("{}: folder not found", root_.string()));
  if (!fs::is_directory(root_, unknown))
    throw ConfigError(
        fmt::format("{} is a file; expected the folder of images and labels", root_.string()));
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen = {identity(root_)};
  std::vector<RelativePath> open = {""};
  while (!open.empty()) {
    const RelativePath folder = std::move(open.back());
    open.pop_back();
    auto& files = folders_[folder];
    try {
      for (const auto& entry : fs::directory_iterator(path(folder))) {
        const auto name = entry.path().filename().string();
        if (name.starts_with('.')) continue;
        if (entry.is_directory(unknown)) {
          if (seen.insert(identity(entry.path())).second) open.push_back(joined_path(folder, name));
        } else {
          files.push_back(name);
        }
      }
    } catch (const fs::filesystem_error& problem) {
      throw Error(fmt::format("{}: cannot list the folder: {}", path(folder).string(),
                              problem.code().message()));
    }
    std::ranges::sort(files);
  }
}

std::vector<RelativePath> Listing::folders() const {
  std::vector<RelativePath> all;
  for (const auto& [folder, files] : folders_) all.push_back(folder);
  return all;
}

bool Listing::has_file(const RelativePath& file) const {
  return std::ranges::binary_search(files(folder_of(file)), name_of(file));
}

std::span<const std::string> Listing::files(const RelativePath& folder) const {
  const auto found = folders_.find(folder);
  if (found == folders_.end()) return {};
  return found->second;
}

std::vector<std::string> Listing::files(const RelativePath& folder,
                                        std::string_view extension) const {
  std::vector<std::string> names;
  for (const auto& name : files(folder))
    if (extension_of(name) == extension) names.push_back(name);
  return names;
}

std::vector<RelativePath> Listing::all_files(std::string_view extension) const {
  std::vector<RelativePath> places;
  for (const auto& [folder, names] : folders_)
    for (const auto& name : names)
      if (extension_of(name) == extension) places.push_back(joined_path(folder, name));
  return places;
}

std::vector<RelativePath> Listing::images_below(const RelativePath& folder) const {
  std::vector<RelativePath> places;
  const auto inside = joined_path(folder, "") + (folder.empty() ? "" : "/");
  for (const auto& [place, files] : folders_) {
    if (place != folder && !place.starts_with(inside)) continue;
    for (const auto& name : files)
      if (is_image_name(name)) places.push_back(joined_path(place, name));
  }
  std::ranges::sort(places);
  return places;
}

std::vector<std::string> Listing::folders(const RelativePath& folder) const {
  std::vector<std::string> names;
  for (const auto& [place, files] : folders_)
    if (!place.empty() && folder_of(place) == folder) names.push_back(name_of(place));
  return names;
}

std::optional<RelativePath> Listing::find_folder(std::string_view wanted) const {
  for (const auto& name : folders(""))
    if (lower_case(name) == lower_case(wanted)) return name;
  return {};
}

std::string Listing::counts() const {
  std::map<std::string, std::size_t> by_extension;
  for (const auto& [folder, files] : folders_)
    for (const auto& name : files) ++by_extension[extension_of(name)];
  std::vector<std::pair<std::string, std::size_t>> sorted(by_extension.begin(), by_extension.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const auto& one) { return one.second; });
  constexpr std::size_t kShown = 8;
  std::vector<std::string> parts;
  for (const auto& [extension, count] : sorted) {
    if (parts.size() == kShown) {
      parts.push_back(fmt::format("{} other types", sorted.size() - kShown));
      break;
    }
    parts.push_back(extension.empty() ? fmt::format("{} without an extension", count)
                                      : fmt::format("{} {}", count, extension));
  }
  return parts.empty() ? "no files" : joined(parts);
}

}  // namespace millrace::formats
