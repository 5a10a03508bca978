// Bilinear resizing of 8-bit RGB, the largest cost of an image besides decoding.
#pragma once

#include <opencv2/core/mat.hpp>
#include <span>

namespace millrace {

struct BilinearKernel;

/// Resizes `image` into `target`, to the target's size, and mirrors it left to right if `mirrored`.
/// Both are (H, W, 3) 8-bit, not empty and not overlapping. Pixel centres are at i + 1/2, borders
/// are repeated, weights have 11 bits: every byte equals OpenCV 4's cv::resize with INTER_LINEAR,
/// in a quarter of its time with AVX-512, in half of it with SSE2. Without antialiasing: shrinking
/// to less than half samples pixels. Thread-safe. Throws std::invalid_argument for other images.
void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored = false);

/// Resizes with antialiasing, as Pillow and therefore detectron2: triangle filters over two target
/// pixels, at least two pixels of the image, with weights of 22 bits; first along rows, rounded to
/// 8 bits, then along columns. Columns come first if the height shrinks by more than twice as many
/// pixels as the width. Every byte equals Pillow 13's `Image.resize(size, Image.BILINEAR)`.
void resize_antialiased(const cv::Mat& image, cv::Mat& target);

/// Returns the kernels for AVX-512, AVX2 and SSE2 that this processor can run, fastest first. The
/// last accepts all images, the others neither very narrow nor very strongly shrunk ones. Empty
/// except on x86-64.
std::span<const BilinearKernel> bilinear_kernels();

/// Resizes with the first of `kernels` that accepts the image; without kernels, with OpenCV.
void resize_bilinear(const cv::Mat& image, cv::Mat& target, bool mirrored,
                     std::span<const BilinearKernel> kernels);

}  // namespace millrace
