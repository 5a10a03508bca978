// Writes instances_*.json.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

/// The JSON of a data set, a record a line: images, annotations and categories with what a Dataset
/// keeps of them. Numbers, polygons, masks and keypoints read back as the same bits.
std::string dataset_text(const Dataset& data);

/// Writes it, atomically. Throws Error.
void write_dataset(const std::filesystem::path& json, const Dataset& data);

}  // namespace millrace::coco
