// A batch as pictures: what the model will see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <opencv2/core/mat.hpp>
#include <span>
#include <string>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// classes[number], or the number where there are fewer names.
std::string class_name(std::span<const std::string> classes, std::int32_t number);

/// Image `index` of a batch without padding, with boxes and masks. (H, W, 3) 8-bit RGB.
cv::Mat batch_picture(const Batch& batch, std::size_t index, std::span<const std::string> classes);

/// Writes the picture of each image as `<name>-<place>.png` and the rest of the batch as
/// `<name>.json`: sizes, scales, and each object's box, class, crowd flag and shape as COCO writes
/// it. Throws Error naming the file.
void write_batch(const std::filesystem::path& folder, const std::string& name, const Batch& batch,
                 std::span<const std::string> classes);

}  // namespace millrace
