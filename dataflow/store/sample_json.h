// A sample's annotations as the JSON beside its image in a shard.
//
//   {"image_id": 139, "file_name": "a.jpg", "width": 640, "height": 426, "annotations": [
//     {"bbox": [x, y, width, height], "category": "cat", "iscrowd": 0,
//      "segmentation": [[x, y, ...], ...] or {"size": [height, width], "counts": "..."}}]}
//
// The words are COCO's, but for the category, which is a name. Pixels; no number loses a bit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Classes by name, numbered as they are first met.
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

/// Class k is called classes[k].
std::string sample_json(const Sample& sample, const std::vector<std::string>& classes);

/// The sample in such a text; `where` names it in messages. Of an object's members all but
/// "bbox" may be missing; "category_id" replaces the category's name; width and height are 0 if
/// they are missing. Objects that are marked `ignore` are left out. Throws DataError.
Sample read_sample_json(std::string_view text, const std::string& where, ClassNames& classes);

}  // namespace millrace
