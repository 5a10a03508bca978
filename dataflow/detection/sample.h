// The messages of detection: one image with its objects, and a batch of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/engine/message.h"
#include "millrace/dataflow/image/lazy_image.h"

namespace millrace {

/// The objects of one image; all members have the same length. Without outlines (Source::about),
/// each segmentation is an empty list of polygons.
struct Instances {
  std::vector<Box> boxes;                         // pixels of the sample's image
  std::vector<std::int32_t> classes;              // 0 .. K-1: index in the list of classes
  std::vector<std::uint8_t> crowd;                // 1 = crowd region
  std::vector<coco::Segmentation> segmentations;  // same pixels; never a full-image bitmap

  std::size_t size() const { return boxes.size(); }
};

/// The bytes of an image file that are already in memory.
struct EncodedImage {
  std::shared_ptr<const void> owner;  // owner of `bytes`; nullptr = no bytes
  std::string_view bytes;
  std::uint64_t digest = 0;  // digest of `bytes` as written
};

/// Keeps only the objects i with `stays[i]`, in order.
void filter_objects(Instances& objects, const std::vector<bool>& stays);
/// Appends `more` to `objects`.
void append(Instances& objects, Instances more);

/// One image on its way through the flow.
struct Sample {
  std::int64_t image_id = 0;
  std::string path;
  EncodedImage encoded;                // decoded instead of the file, if set
  std::int32_t width = 0, height = 0;  // of the original image, pixels; 0 = not yet known
  LazyImage image;                     // empty until decoded
  float scale_x = 1, scale_y = 1;      // current pixels per original pixel
  Instances objects;                   // in pixels of `image`
};

/// Returns the sample with an empty list of polygons for each outline.
Sample without_outlines(Sample sample);

/// The objects of a source of samples that a model can learn. Crowd regions are not counted.
struct ObjectCounts {
  std::int64_t samples = 0;
  std::int64_t objects = 0;
  std::int64_t without_shape = 0;   // objects without a shape
  std::string first_without_shape;  // path of the first sample with such an object
};

/// The properties of one image of a batch that a model needs.
struct ImageInfo {
  std::int64_t image_id = 0;
  std::int32_t original_width = 0, original_height = 0;
  std::int32_t width = 0, height = 0;  // true size in the batch, before padding (orig_image_dims)
  float scale_x = 1, scale_y = 1;      // batch pixels per original pixel
};

/// Pixels on a device: millrace/models/detector/device_pixels.h.
struct DevicePixels;

/// A padded batch. `pixels` is (N, height, width, 3) RGB bytes, zero outside each image's true
/// size; the memory returns to its pool when the last owner releases it.
struct Batch {
  std::shared_ptr<std::uint8_t[]> pixels;
  std::int32_t height = 0, width = 0;
  std::int32_t divisor = 0;        // padding of a single image: to multiples of it; 0 = unknown
  std::vector<ImageInfo> images;   // N
  std::vector<Instances> objects;  // N (orig_gt_counts are their sizes)
  /// Copy of the pixels on the model's device; nullptr = not copied yet.
  std::shared_ptr<const DevicePixels> on_device;

  std::size_t size() const { return images.size(); }
  std::size_t bytes() const { return size() * height * width * 3; }
  /// Returns image i with its padding; borrowed from `pixels`.
  cv::Mat padded_image(std::size_t i) const;
  /// Returns image i at its true size, without padding; borrowed from `pixels`.
  cv::Mat image(std::size_t i) const;
};

template <>
struct MessageName<Sample> {
  static std::string get() { return "sample"; }
};
template <>
struct MessageName<Batch> {
  static std::string get() { return "batch"; }
};

template <>
struct MessageBytes<Sample> {
  static std::size_t get(const Sample& sample) { return sample.image.bytes(); }
};
template <>
struct MessageBytes<Batch> {
  static std::size_t get(const Batch& batch) { return batch.bytes(); }
};

/// Returns the bytes of a sample's pixels after decoding; 0 if its size is unknown.
inline std::size_t expected_bytes(const Sample& sample) {
  return std::size_t{3} * static_cast<std::size_t>(sample.width) *
         static_cast<std::size_t>(sample.height);
}

/// Return hashes: of objects, continued from `seed`, and of everything in a batch.
std::uint64_t digest(const Instances& objects, std::uint64_t seed);
std::uint64_t digest(const Batch& batch);

}  // namespace millrace
