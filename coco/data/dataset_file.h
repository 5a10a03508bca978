// Writes instances_*.json.
#pragma once

#include <filesystem>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// Writes a data set as JSON, atomically, one record per line: images, annotations and categories
/// with the fields that a Dataset stores. Numbers, polygons, masks and keypoints read back bitwise
/// equal. Throws Error.
void write_dataset(const std::filesystem::path& json, const Dataset& data);

}  // namespace millrace::coco
