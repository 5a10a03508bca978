// The files below a folder, by name. Immutable, so any thread may read it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/text.h"

namespace millrace::formats {

/// A path relative to the root of a Listing, with parts separated by "/"; "" = the root.
using RelativePath = std::string;

/// Returns "a/b" for "a" and "b"; if one of them is empty, the other.
RelativePath joined_path(const RelativePath& folder, std::string_view name);
/// Returns "a/b" for "a/b/c.txt".
RelativePath folder_of(const RelativePath& place);
/// Returns "c.txt" for "a/b/c.txt".
std::string name_of(std::string_view place);

class Listing {
 public:
  /// Lists files and folders, follows links, and skips hidden ones. Throws ConfigError if `root` is
  /// not a folder, and Error if a folder below it cannot be listed.
  explicit Listing(std::filesystem::path root);

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path path(const RelativePath& place) const {
    return place.empty() ? root_ : root_ / place;
  }

  /// Returns all folders, sorted, the root first.
  std::vector<RelativePath> folders() const;
  bool has_folder(const RelativePath& folder) const { return folders_.contains(folder); }
  bool has_file(const RelativePath& file) const;
  /// Returns the sorted names of the files directly in a folder; empty if it does not exist.
  std::span<const std::string> files(const RelativePath& folder) const;
  /// Returns the files with a lower-case extension, such as ".txt".
  std::vector<std::string> files(const RelativePath& folder, std::string_view extension) const;
  /// Returns all files with an extension, folder by folder.
  std::vector<RelativePath> all_files(std::string_view extension) const;
  /// Returns the image files below a folder.
  std::vector<RelativePath> images_below(const RelativePath& folder) const;
  /// Returns the sorted names of a folder's subfolders.
  std::vector<std::string> folders(const RelativePath& folder) const;
  /// Returns the folder in the root with this name, ignoring case.
  std::optional<RelativePath> find_folder(std::string_view name) const;

  /// Returns the number of files by extension, most frequent first, such as "40 .jpg, 40 .xml, 2
  /// .txt".
  std::string counts() const;

 private:
  std::filesystem::path root_;
  std::map<RelativePath, std::vector<std::string>>
      folders_;  // folders and the names of their files
};

/// Returns ".jpg" for "A.JPG"; "" if there is no extension.
std::string extension_of(std::string_view name);
/// Returns "A" for "b/A.JPG".
std::string stem_of(std::string_view place);

/// Name of the only split of a folder without splits.
inline constexpr const char* kWhole = "all";

/// Returns the split (train, val or test) that a folder or file name such as "valid" or "val2017"
/// means; nullopt for other names.
std::optional<std::string> split_name(std::string_view name);
/// Returns the split of the first word that is a split's name, such as train for "train_labels";
/// nullopt if not found.
std::optional<std::string> split_in_words(std::string_view name);
/// Returns the split that a folder of a path names; kWhole if none does.
std::string split_of_path(const RelativePath& place);

/// Returns the parts between slashes.
std::vector<std::string> parts_of(const RelativePath& place);

}  // namespace millrace::formats
