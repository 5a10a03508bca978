// Photos turned as their camera was held.
#pragma once

#include <opencv2/core/mat.hpp>

namespace millrace {

/// The picture as it stood before the camera. REQUIRES: an EXIF orientation of 1 .. 8.
cv::Mat upright(const cv::Mat& image, int orientation);

}  // namespace millrace
