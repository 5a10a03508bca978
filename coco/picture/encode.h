// Encoders for image files.
#pragma once

#include <opencv2/core/mat.hpp>
#include <string>

namespace millrace::coco {

/// Returns a baseline JPEG with 4:2:0 chroma subsampling of a (H, W, 3) 8-bit RGB picture with
/// sides of at most 65500 pixels; `quality` is 1 .. 100. Throws Error.
std::string encode_jpeg(const cv::Mat& rgb, int quality);

/// Returns a PNG of a (H, W, 3) 8-bit RGB picture. Throws Error.
std::string encode_png(const cv::Mat& rgb);

}  // namespace millrace::coco
