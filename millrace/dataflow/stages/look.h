// A batch as pictures: what the model will see.
#pragma once

#include <cstddef>
#include <opencv2/core/mat.hpp>
#include <span>
#include <string>

#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Image `index` of a batch without padding, with boxes and masks. (H, W, 3) 8-bit RGB.
cv::Mat batch_picture(const Batch& batch, std::size_t index, std::span<const std::string> classes);

}  // namespace millrace
