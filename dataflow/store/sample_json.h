// A sample's annotations as JSON, stored beside its image in a shard.
//
//   {"image_id": 139, "file_name": "a.jpg", "width": 640, "height": 426, "annotations": [
//     {"bbox": [x, y, width, height], "category": "cat", "iscrowd": 0,
//      "segmentation": [[x, y, ...], ...] or {"size": [height, width], "counts": "..."}}]}
//
// The keys are COCO's, except that the category is a name. Coordinates in pixels, without loss of
// bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Numbers classes by name in the order of first use.
class ClassNames {
 public:
  std::int32_t number(std::string_view name) {
    const auto next = static_cast<std::int32_t>(names_.size());
    const auto [found, is_new] = numbers_.try_emplace(std::string(name), next);
    if (is_new) names_.emplace_back(name);
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int32_t> numbers_;  // by name
};

/// Returns the JSON text; the name of class k is classes[k].
std::string sample_json(const Sample& sample, const std::vector<std::string>& classes);

/// Reads a sample from such a text; `where` is the prefix of error messages. All members of an
/// object but "bbox" are optional; "category_id" replaces the category's name; width and height are
/// 0 if missing. Objects marked `ignore` are left out. Throws DataError.
Sample read_sample_json(std::string_view text, const std::string& where, ClassNames& classes);

}  // namespace millrace
