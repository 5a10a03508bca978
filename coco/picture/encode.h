// Pictures to the bytes of image files.
#pragma once

#include <opencv2/core/mat.hpp>
#include <string>

namespace millrace::coco {

/// A baseline JPEG, colours at half the resolution each way (4:2:0), of a (H, W, 3) 8-bit RGB
/// picture of at most 65500 pixels a side; `quality` 1 .. 100. Throws Error.
std::string encode_jpeg(const cv::Mat& rgb, int quality);

/// A PNG of a (H, W, 3) 8-bit RGB picture. Throws Error.
std::string encode_png(const cv::Mat& rgb);

}  // namespace millrace::coco
