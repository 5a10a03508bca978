// Colours of an image changed by given amounts. Images are (H, W, 3) 8-bit RGB; each function gives
// a new one, rounded to the nearest level and saturated. Pure; any thread.
#pragma once

#include <opencv2/core/mat.hpp>
#include <opencv2/core/matx.hpp>

namespace millrace::photometry {

/// Luma: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), as torchvision, detectron2 and Pillow have it.
inline const cv::Vec3d kLuma{0.299, 0.587, 0.114};

/// Every level times `factor` (torchvision's adjust_brightness).
cv::Mat brightness(const cv::Mat& image, double factor);
/// Away from the mean luma by `factor`: 0 gives an image of that grey (torchvision's
/// adjust_contrast).
cv::Mat contrast(const cv::Mat& image, double factor);
/// Away from each pixel's own luma by `factor`: 0 gives a grey image (torchvision's
/// adjust_saturation).
cv::Mat saturation(const cv::Mat& image, double factor);
/// Turns the hue by `turns` of the colour circle, in 256 steps (torchvision's adjust_hue on Pillow
/// images).
cv::Mat hue(const cv::Mat& image, double turns);
/// 255 * (level / 255) ^ exponent (torchvision's adjust_gamma).
cv::Mat gamma(const cv::Mat& image, double exponent);
/// Adds a number of levels to each channel.
cv::Mat shift(const cv::Mat& image, const cv::Vec3d& levels);

}  // namespace millrace::photometry
