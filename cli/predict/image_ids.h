// Matches photos to the image ids of annotations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/coco/data/annotations.h"

namespace millrace::cli {

/// Returns the image id of each file, matched by file name; if several images have the name, the
/// one whose path shares the most trailing folders with the file's. Throws Error that lists the
/// files that match no image, match several, or share one.
std::vector<std::int64_t> image_ids(const coco::Dataset& truth,
                                    const std::vector<std::filesystem::path>& files);

}  // namespace millrace::cli
