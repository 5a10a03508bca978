// Ids of photos from annotations of the same photos.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/coco/data/annotations.h"

namespace millrace::cli {

/// The id of each file, by file_name: the image whose name is the file's, of several the one that
/// shares the most folders with the file's path. Throws Error naming the files that have no image,
/// that fit several, or that share one.
std::vector<std::int64_t> image_ids(const coco::Dataset& truth,
                                    const std::vector<std::filesystem::path>& files);

}  // namespace millrace::cli
