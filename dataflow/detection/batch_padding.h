// The zeros around the images of a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <opencv2/core/mat.hpp>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/image/lazy_image.h"

namespace millrace {

/// The size with sides rounded up to multiples of `divisor`.
cv::Size padded_size(cv::Size size, std::int64_t divisor);

/// Writes an image into the top left corner of its slot of a batch and clears the rest.
void fill_slot(const LazyImage& image, cv::Mat slot);

/// Width and height of "1344x800". Throws std::invalid_argument for other text.
cv::Size parse_shape(const std::string& text);

/// Some images of a batch.
struct BatchPart {
  Batch batch;
  std::vector<std::size_t> places;  // of its images in the whole batch, ascending
};

/// A batch cut into parts whose images have the padded size that each would have alone, by their
/// first images: the batch itself if all have its size or its divisor is not known.
std::vector<BatchPart> parts_of_one_size(const Batch& batch);

}  // namespace millrace
