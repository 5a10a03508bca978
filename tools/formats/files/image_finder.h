// Finds the image of a label by name.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {

/// Immutable after construction.
class ImageFinder {
 public:
  /// Indexes the images of a folder, except those below folders with one of these lower-case names,
  /// which contain masks.
  ImageFinder(const Listing& folder, const std::set<std::string>& mask_folders = {});

  /// Returns the image with a stem: one in the label's folder, otherwise the one with the most
  /// folder names in common with the label's path.
  std::optional<RelativePath> by_stem(const std::string& stem, const RelativePath& label) const;
  /// Returns the image with the file name or path in a label, whose folders may be those of another
  /// machine.
  std::optional<RelativePath> by_name(std::string_view name, const RelativePath& label) const;
  /// Returns the images in the folders of `some` that are not among these.
  std::vector<RelativePath> others_beside(const std::set<RelativePath>& some) const;

 private:
  std::optional<RelativePath> nearest(const std::vector<RelativePath>& candidates,
                                      const RelativePath& label) const;

  std::vector<RelativePath> images_;
  std::map<std::string, std::vector<RelativePath>> by_stem_, by_name_;
};

}  // namespace millrace::formats
