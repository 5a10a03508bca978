// The functions of each format: see Format.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/tools/formats/format.h"

namespace millrace::formats {

using LookAt = std::optional<std::string>(const Listing& folder);
using ReadFolder = std::vector<Split>(const Listing& folder, coco::Findings& findings);
using WriteFolder = void(std::span<const Split> splits, const std::filesystem::path& out,
                         coco::Findings& findings);

LookAt look_coco, look_csv, look_labelme, look_masks, look_voc, look_yolo;
ReadFolder read_coco, read_csv, read_labelme, read_masks, read_voc, read_yolo;
WriteFolder write_coco, write_csv, write_labelme, write_masks, write_object_masks, write_voc,
    write_yolo, write_yolo_segments;

}  // namespace millrace::formats
