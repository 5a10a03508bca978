// JPEG files of the size and weight of COCO's, with annotations, to measure a data flow with where
// there is no data set.
#pragma once

#include <cstdint>
#include <filesystem>

namespace millrace::cli {

/// Writes `train2017/` with so many pictures of 640 x 480, about 120 KB each, `val2017/` with a
/// tenth of them, and their annotations under `folder`, which appears whole or not at all. Throws
/// Error.
void make_photos(const std::filesystem::path& folder, std::int64_t count);

}  // namespace millrace::cli
