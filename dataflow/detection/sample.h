// Detection's messages: one image with its objects, and a batch of them.
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
/// each is an empty list of polygons.
struct Instances {
  std::vector<Box> boxes;                         // pixels of the image they belong to
  std::vector<std::int32_t> classes;              // 0 .. K-1: position in the list of classes
  std::vector<std::uint8_t> crowd;                // 1: a crowd region
  std::vector<coco::Segmentation> segmentations;  // same pixels; never a full-image bitmap

  std::size_t size() const { return boxes.size(); }
};

/// The bytes of an image file that are in memory already.
struct EncodedImage {
  std::shared_ptr<const void> owner;  // of `bytes`; nullptr: there are none
  std::string_view bytes;
  std::uint64_t digest = 0;  // of `bytes`, as they were written
};

/// Leaves only the objects i with `stays[i]`, in their order.
void keep(Instances& objects, const std::vector<bool>& stays);
/// Appends `more` to `objects`.
void append(Instances& objects, Instances more);

/// One image on its way through the flow.
struct Sample {
  std::int64_t image_id = 0;
  std::string path;
  EncodedImage encoded;                // if there is one, it is decoded and not the file
  std::int32_t width = 0, height = 0;  // of the original image, pixels; 0: not known yet
  LazyImage image;                     // empty until decoded
  float scale_x = 1, scale_y = 1;      // present pixels per original pixel
  Instances objects;                   // in pixels of `image`
};

/// The sample with an empty list of polygons for each outline.
Sample without_outlines(Sample sample);

/// What there is to learn in a source of samples. Crowd regions are not counted.
struct ObjectCounts {
  std::int64_t samples = 0;
  std::int64_t objects = 0;
  std::int64_t without_shape = 0;   // of the objects
  std::string first_without_shape;  // path of the first sample that has such an object
};

/// What a model needs to know of one image of a batch.
struct ImageInfo {
  std::int64_t image_id = 0;
  std::int32_t original_width = 0, original_height = 0;
  std::int32_t width = 0, height = 0;  // true size in the batch, before padding (orig_image_dims)
  float scale_x = 1, scale_y = 1;      // batch pixels per original pixel
};

/// Pixels on a device: millrace/models/detector/device_pixels.h.
struct DevicePixels;

/// A padded batch. `pixels` is (N, height, width, 3) RGB bytes, zero outside each image's true
/// size; pooled memory that goes back when the last owner lets go.
struct Batch {
  std::shared_ptr<std::uint8_t[]> pixels;
  std::int32_t height = 0, width = 0;
  std::int32_t divisor = 0;        // an image alone is padded to multiples of it; 0: not known
  std::vector<ImageInfo> images;   // N
  std::vector<Instances> objects;  // N (orig_gt_counts are their sizes)
  /// The same pixels on the model's device; nullptr if not copied there yet.
  std::shared_ptr<const DevicePixels> on_device;

  std::size_t size() const { return images.size(); }
  std::size_t bytes() const { return size() * height * width * 3; }
  /// Image i with its padding, as OpenCV sees it: borrowed from `pixels`.
  cv::Mat padded_image(std::size_t i) const;
  /// Image i at its true size, without padding; borrowed from `pixels`.
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

/// The memory of a sample's pixels once they are decoded; 0: its size is not known.
inline std::size_t expected_bytes(const Sample& sample) {
  return std::size_t{3} * static_cast<std::size_t>(sample.width) *
         static_cast<std::size_t>(sample.height);
}

/// A hash of the objects, continued from `seed`; one of everything a batch holds.
std::uint64_t digest(const Instances& objects, std::uint64_t seed);
std::uint64_t digest(const Batch& batch);

}  // namespace millrace
