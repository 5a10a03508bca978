// The pixels of a sample, mirrored and resized when they are first read.
#pragma once

#include <cstddef>
#include <opencv2/core/mat.hpp>
#include <utility>

namespace millrace {

/// Whose bilinear arithmetic resizes an image.
enum class Resampling {
  opencv,  // resize_bilinear: no antialiasing
  pillow,  // resize_antialiased
};

/// A (H, W, 3) 8-bit RGB image that may hold its pixels at another size than its own: smaller if
/// the decoder has skipped what a later resize would throw away, or not mirrored and resized yet,
/// so that both are done on the way into a batch. Copies share their pixels. Not thread-safe.
class LazyImage {
 public:
  LazyImage() = default;
  /// An image of the size of `pixels`, or of `size`.
  LazyImage(cv::Mat pixels, cv::Size size = {}) : pixels_(std::move(pixels)), due_(size) {}

  bool empty() const { return pixels_.empty(); }
  cv::Size size() const { return due_.empty() ? pixels_.size() : due_; }
  /// What it holds now, whether that is still to be mirrored, and how it is resized to its size.
  const cv::Mat& held() const { return pixels_; }
  bool is_mirrored() const { return mirrored_; }
  Resampling resampling() const { return resampling_; }
  /// With pixels of its own.
  LazyImage clone() const;
  /// The memory that it holds now.
  std::size_t bytes() const { return pixels_.total() * pixels_.elemSize(); }

  /// All of its pixels, to read, to change or to exchange for others.
  cv::Mat& pixels();
  /// The same, to read.
  cv::Mat pixels() const { return LazyImage(*this).pixels(); }

  /// Makes it an image of `size`. Of several sizes only the last before the next read counts.
  void resize(cv::Size size, Resampling resampling = Resampling::opencv) {
    due_ = size;
    resampling_ = resampling;
  }
  /// Mirrors it left to right.
  void mirror() { mirrored_ = !mirrored_; }
  /// Fills `target`, a matrix of its size and type. Throws std::invalid_argument for another.
  void write_to(cv::Mat& target) const;

 private:
  cv::Mat pixels_;
  cv::Size due_;           // empty: that of pixels_
  bool mirrored_ = false;  // due too
  Resampling resampling_ = Resampling::opencv;
};

}  // namespace millrace
