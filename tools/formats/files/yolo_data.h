// What describes a YOLO folder: data.yaml, or lists of class names.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "millrace/tools/formats/files/listing.h"

namespace millrace::formats {

struct YoloData {
  Place file;                                        // that has the names; "" if none has
  std::vector<std::string> names;                    // class k is the k-th; empty if not recorded
  std::map<std::string, std::vector<Place>> splits;  // folders, lists or images, by split
  std::size_t keypoint_numbers = 0;                  // after each box
};

/// The folder's YAML file with `names` or `nc`; else classes.txt, obj.names and their like. Throws
/// Error, with file and line, for YAML that cannot be read or names what is not in the folder.
YoloData read_yolo_data(const Listing& folder);

/// The YAML files of the folder that describe a YOLO data set; unreadable ones are not among them.
std::vector<Place> yolo_yaml_files(const Listing& folder);

}  // namespace millrace::formats
