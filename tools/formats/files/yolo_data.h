// Reads the description of a YOLO folder: data.yaml, or lists of class names.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {

struct YoloData {
  RelativePath file;               // file with the names; empty if missing
  std::vector<std::string> names;  // by class; empty if not recorded
  std::map<std::string, std::vector<RelativePath>>
      splits;                        // folders, lists or images of each split
  std::size_t keypoint_numbers = 0;  // count of keypoint numbers after each box
};

/// Reads the folder's YAML file with `names` or `nc`, otherwise classes.txt, obj.names or a similar
/// file. Throws Error, with file and line, for invalid YAML or YAML that refers to files not in the
/// folder.
YoloData read_yolo_data(const Listing& folder);

/// Returns the folder's YAML files that describe a YOLO data set, without unreadable ones.
std::vector<RelativePath> yolo_yaml_files(const Listing& folder);

}  // namespace millrace::formats
