// The files below a folder, by name. Const, so any thread may read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::formats {

/// A path relative to the root of a Listing, parts divided by /; "" is the root.
using Place = std::string;

/// "a/b"; if one is empty, the other.
Place joined_place(const Place& folder, std::string_view name);
/// "a/b" of "a/b/c.txt"
Place folder_of(const Place& place);
/// "c.txt" of "a/b/c.txt"
std::string name_of(std::string_view place);

class Listing {
 public:
  /// Lists files and folders, follows links, leaves out hidden ones. Throws ConfigError if `root`
  /// is no folder, Error if something below it cannot be listed.
  explicit Listing(std::filesystem::path root);

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path path(const Place& place) const {
    return place.empty() ? root_ : root_ / place;
  }

  /// All folders, the root first, sorted.
  std::vector<Place> folders() const;
  bool has_folder(const Place& folder) const { return folders_.contains(folder); }
  bool has_file(const Place& file) const;
  /// The names of the files of a folder, not below it, sorted; none if it is not there.
  std::span<const std::string> files(const Place& folder) const;
  /// Those with one of these extensions, ".txt", in any case.
  std::vector<std::string> files(const Place& folder,
                                 std::span<const std::string_view> extensions) const;
  std::vector<std::string> files(const Place& folder, std::string_view extension) const {
    return files(folder, std::span(&extension, 1));
  }
  /// Places of all files with an extension, folder by folder.
  std::vector<Place> all_files(std::string_view extension) const;
  /// Places of the image files below a folder.
  std::vector<Place> images_below(const Place& folder) const;
  /// Names of the folders of a folder, sorted.
  std::vector<std::string> folders(const Place& folder) const;
  /// The folder of the root with this name, in any case.
  std::optional<Place> find_folder(std::string_view name) const;

  /// "40 .jpg, 40 .xml, 2 .txt": files by extension, the most first.
  std::string counts() const;

 private:
  std::filesystem::path root_;
  std::map<Place, std::vector<std::string>> folders_;  // and the files of each
};

/// ".jpg" of "A.JPG"; "" without one.
std::string extension_of(std::string_view name);
/// "A" of "b/A.JPG".
std::string stem_of(std::string_view place);
std::string lower_case(std::string_view text);

/// The name of the only split of a folder that is not divided.
inline constexpr const char* kWhole = "all";

/// What a split is called, whatever a folder or file calls it ("valid", "val2017"): train, val or
/// test; nullopt for other names.
std::optional<std::string> split_name(std::string_view name);
/// The same for the first word of a name that names a split: train of "train_labels".
std::optional<std::string> split_in_words(std::string_view name);
/// The split that a part of a path names; kWhole for none.
std::string split_of_path(const Place& place);

/// The parts between the slashes.
std::vector<std::string> parts_of(const Place& place);

}  // namespace millrace::formats
