// Bilinear resizing of 8-bit RGB: most of what an image costs besides decoding.
#pragma once

#include <opencv2/core/mat.hpp>
#include <span>

namespace millrace {

struct BilinearKernel;

/// Fills `target` with `image`, resized to its size and `mirrored` left to right; both (H, W, 3)
/// 8-bit, not empty, not overlapping. Pixel centres at i + 1/2, borders repeated, weights of 11
/// bits: every byte equals OpenCV 4's cv::resize with INTER_LINEAR, in a quarter of its time with
/// AVX-512, in half of it with SSE2. No antialiasing: what shrinks to less than half is sampled.
/// Any thread. Throws std::invalid_argument for other images.
void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored = false);

/// The same with antialiasing, as by Pillow and so by detectron2: triangles over two target pixels,
/// at least two of the image, with weights of 22 bits; first along rows, rounded to 8 bits, then
/// along columns; the other way round if the height shrinks by more than twice as many pixels as
/// the width. Every byte equals Pillow 13's `Image.resize(size, Image.BILINEAR)`.
void resize_antialiased(const cv::Mat& image, cv::Mat& target);

/// The kernels for AVX-512, AVX2 and SSE2 that this processor can run, fastest first. The last
/// takes all images, the others not very narrow and very much smaller ones. Empty except on x86-64.
std::span<const BilinearKernel> bilinear_kernels();

/// The same by the first of `kernels` that takes the image; without any, by OpenCV.
void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored,
                     std::span<const BilinearKernel> kernels);

}  // namespace millrace
