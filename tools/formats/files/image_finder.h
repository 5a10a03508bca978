// The image that a label belongs to, found by its name.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {

/// Const once made.
class ImageFinder {
 public:
  /// Images in folders of these names (in lower case), or below them, are masks and do not count.
  ImageFinder(const Listing& folder, const std::set<std::string>& mask_folders = {});

  /// The image with a stem: beside the label, else the one whose path begins most like the label's.
  std::optional<Place> by_stem(const std::string& stem, const Place& label) const;
  /// The image with a file name or path of a label, whose folders may be another machine's.
  std::optional<Place> by_name(std::string_view name, const Place& label) const;
  /// The other images in the folders of `some`.
  std::vector<Place> others_beside(const std::set<Place>& some) const;

 private:
  std::optional<Place> nearest(const std::vector<Place>& candidates, const Place& label) const;

  std::vector<Place> images_;
  std::map<std::string, std::vector<Place>> by_stem_, by_name_;
};

}  // namespace millrace::formats
