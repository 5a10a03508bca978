// The one thing that detection needs to know of a photo's EXIF data.
#pragma once

#include <opencv2/core/mat.hpp>
#include <string_view>

namespace millrace {

/// How the camera was held, 1 .. 8 as EXIF counts (1: upright; 5 .. 8 exchange width and height);
/// 1 where the file does not say. Reads no byte outside `jpeg`, whatever is in it.
int exif_orientation(std::string_view jpeg);

/// The picture as it stood before the camera.
cv::Mat upright(const cv::Mat& image, int orientation);

}  // namespace millrace
