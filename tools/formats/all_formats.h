// The functions of each format; see Format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "millrace/tools/formats/format.h"

namespace millrace::formats {

using DetectFormat = std::optional<std::string>(const Listing& folder);
using ReadFolder = std::vector<Split>(const Listing& folder, coco::Findings& findings);

DetectFormat detect_coco, detect_csv, detect_labelme, detect_masks, detect_voc, detect_yolo;
ReadFolder read_coco, read_csv, read_labelme, read_masks, read_voc, read_yolo;

}  // namespace millrace::formats
