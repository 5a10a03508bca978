// Bilinear resizing of 8-bit RGB with antialiasing, as Pillow does it and detectron2 with it.
#pragma once

#include <opencv2/core/mat.hpp>

namespace millrace {

/// Fills `target` with `image`, resized to its size; both (H, W, 3) 8-bit, not empty, not
/// overlapping. Triangles over two target pixels, at least two of the image, with weights of 22
/// bits; first along rows, rounded to 8 bits, then along columns; the other way round where the
/// height shrinks by more than twice as many pixels as the width. Every byte equals Pillow 13's
/// `Image.resize(size, Image.BILINEAR)`. Any thread. Throws std::invalid_argument for other images.
void resize_antialiased(const cv::Mat& image, cv::Mat& target);

}  // namespace millrace
