// What all writers use: classes, places of files, numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/tools/formats/files/listing.h"
#include "millrace/tools/formats/format.h"

namespace millrace::formats {

/// The classes of several splits, told by their names: those of the first in its order, then more.
class ClassList {
 public:
  /// Throws Error where two categories of a split have one name.
  explicit ClassList(std::span<const Split> splits);

  const std::vector<std::string>& names() const { return names_; }
  /// The position of a category of a split.
  std::size_t position(const coco::Dataset& data, std::int64_t category_id) const;
  const std::string& name(const coco::Dataset& data, std::int64_t category_id) const {
    return names_[position(data, category_id)];
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> positions_;
};

/// A split as a format knows it that divides into train, val and test: one of these, or kWhole.
struct NamedSplit {
  std::string name;
  const Split* split;
};

/// train2017 is train; the only split may have any name. Throws ConfigError for others, and where
/// two are the same.
std::vector<NamedSplit> named_splits(std::span<const Split> splits);

/// Gives a file another place: as a hard link where the file system can, else as a copy. Makes
/// folders. Throws Error.
void place_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// Writes a new file and the folders above it, without waiting for the disk. Throws Error.
void write_new_file(const std::filesystem::path& file, std::string_view bytes);

/// Places without their extension, "train/a": throws Error where a format that tells images by
/// these would have two of one.
class UniqueStems {
 public:
  void add(const Place& image);

 private:
  std::map<Place, Place> seen_;
};

/// "a/b" of "a/b.jpg"
Place without_extension(const Place& place);

/// A number in as few digits as are exact to this many decimals.
std::string decimal_text(double number, int decimals);

/// Text in quotes for JSON, which YAML reads too. What is not UTF-8 is replaced.
std::string json_quoted(std::string_view text);

}  // namespace millrace::formats
