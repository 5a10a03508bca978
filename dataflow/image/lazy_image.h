// The pixels of a sample, which are mirrored and resized on first access.
#pragma once

#include <cstddef>
#include <opencv2/core/mat.hpp>
#include <utility>

namespace millrace {

/// The library whose bilinear arithmetic resizes an image.
enum class Resampling {
  opencv,  // resize_bilinear: no antialiasing
  pillow,  // resize_antialiased
};

/// A (H, W, 3) 8-bit RGB image whose stored pixels may differ from its size and orientation:
/// smaller if the decoder skipped pixels that a later resize would discard, or not yet mirrored and
/// resized, so that both happen during the copy into a batch. Copies share pixels. Not thread-safe.
class LazyImage {
 public:
  LazyImage() = default;
  /// Makes an image of the size of `pixels`, or of `size` if given.
  LazyImage(cv::Mat pixels, cv::Size size = {}) : pixels_(std::move(pixels)), target_size_(size) {}

  bool empty() const { return pixels_.empty(); }
  cv::Size size() const { return target_size_.empty() ? pixels_.size() : target_size_; }
  /// Stored pixels, whether they must still be mirrored, and how they are resized to size().
  const cv::Mat& stored_pixels() const { return pixels_; }
  bool is_mirrored() const { return mirrored_; }
  Resampling resampling() const { return resampling_; }
  /// Returns a copy with its own pixels.
  LazyImage clone() const;
  /// Returns the bytes of the stored pixels.
  std::size_t bytes() const { return pixels_.total() * pixels_.elemSize(); }

  /// Returns all pixels after mirroring and resizing, for reading, writing or replacing.
  cv::Mat& pixels();
  /// Returns all pixels for reading.
  cv::Mat pixels() const { return LazyImage(*this).pixels(); }

  /// Sets the size of the image. Only the last size before the next access counts.
  void resize(cv::Size size, Resampling resampling = Resampling::opencv) {
    target_size_ = size;
    resampling_ = resampling;
  }
  /// Mirrors the image left to right.
  void mirror() { mirrored_ = !mirrored_; }
  /// Writes the image to `target`, which must have its size and type; else throws
  /// std::invalid_argument.
  void write_to(cv::Mat& target) const;

 private:
  cv::Mat pixels_;
  cv::Size target_size_;   // empty = size of pixels_
  bool mirrored_ = false;  // still to be mirrored
  Resampling resampling_ = Resampling::opencv;
};

}  // namespace millrace
