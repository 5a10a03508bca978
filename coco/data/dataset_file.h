// Writes instances_*.json.
#pragma once

#include <filesystem>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// Writes the JSON of a data set atomically, a record a line: images, annotations and categories
/// with what a Dataset keeps of them. Numbers, polygons, masks and keypoints read back as the same
/// bits. Throws Error.
void write_dataset(const std::filesystem::path& json, const Dataset& data);

}  // namespace millrace::coco
