// Bilinear resizing of 8-bit RGB: most of what an image costs besides decoding.
#pragma once

#include <opencv2/core/mat.hpp>
#include <span>

namespace millrace {

struct BilinearKernel;

/// Fills `target` with `image`, mirrored left to right if told, resized to its size; both (H, W, 3)
/// 8-bit, not empty, not overlapping. Pixel centres at i + 1/2, borders repeated, weights of 11
/// bits: every byte equals OpenCV 4's cv::resize with INTER_LINEAR, in a quarter of its time with
/// AVX-512, in half of it with SSE2. No antialiasing: what shrinks to less than half is sampled.
/// Any thread. Throws std::invalid_argument for other images.
void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored = false);

/// What this processor can run of AVX-512, AVX2 and SSE2, fastest first. The last takes all images;
/// others leave very narrow and very much smaller ones to it. None on other processors than x86-64.
std::span<const BilinearKernel> bilinear_kernels();

/// The same by the first of `kernels` that takes the image; without any, by OpenCV.
void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored,
                     std::span<const BilinearKernel> kernels);

}  // namespace millrace
