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

/// Writes an image into the top left corner of its slot of a batch and clears the rest.
void fill_slot(const LazyImage& image, cv::Mat slot);

/// The width and height that "1344x800" says. Throws std::invalid_argument for what is no shape.
cv::Size parse_shape(const std::string& text);

/// Some images of a batch.
struct BatchPart {
  Batch batch;
  std::vector<std::size_t> places;  // of its images in the whole batch, ascending
};

/// A batch cut into parts in which every image has the padded size that it would have alone, in the
/// order of their first images. The batch itself is the only part where all its images have its
/// size, or where its divisor is not known.
std::vector<BatchPart> parts_of_one_size(const Batch& batch);

}  // namespace millrace
