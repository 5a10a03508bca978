// Masks as run lengths and polygons, with the semantics of COCO's maskApi.c (pycocotools 2.0.11).
// All functions are pure and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// A box as corners in pixels; x grows to the right, y downwards.
struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;

  float width() const { return x2 - x1; }
  float height() const { return y2 - y1; }
  float area() const { return width() * height(); }
  bool has_area() const { return x2 > x1 && y2 > y1; }
  friend bool operator==(const Box&, const Box&) = default;
};

}  // namespace millrace

namespace millrace::coco {

/// A binary mask of height x width pixels as run lengths in column-major order, beginning with
/// zeros.
struct Rle {
  std::uint32_t height = 0, width = 0;
  std::vector<std::uint32_t> counts;
  friend bool operator==(const Rle&, const Rle&) = default;
};

/// A closed polygon x0, y0, x1, y1, ... in pixels. Double, because COCO's rasterizer rounds
/// fractions of pixels: 0.7 as a float is rounded differently, and masks would differ from
/// pycocotools'.
using Polygon = std::vector<double>;

/// Encodes and decodes COCO's compressed counts (the `counts` string of results and crowds).
/// `decode_counts` throws Error with the invalid byte, or if the runs do not add up to height x
/// width.
std::string encode_counts(const Rle& mask);
Rle decode_counts(std::string_view counts, std::uint32_t height, std::uint32_t width);
/// Decodes into a mask with reused memory. If this throws, the mask is invalid.
void decode_counts(std::string_view counts, std::uint32_t height, std::uint32_t width, Rle& mask);

/// Encodes a bitmap of height x width row-major bytes; non-zero = inside.
Rle encode(const std::uint8_t* bitmap, std::uint32_t height, std::uint32_t width);
/// Writes height x width row-major bytes, 0 or 1.
void decode(const Rle& mask, std::uint8_t* bitmap);

/// Returns the number of pixels inside.
std::uint64_t area(const Rle& mask);
/// Returns the smallest box around the mask, as COCO computes it: {x, y, x + w, y + h}; all 0 for
/// an empty mask.
Box bounding_box(const Rle& mask);

/// Size, area and bounding box of a mask.
struct MaskExtent {
  std::uint32_t height = 0, width = 0;
  std::uint32_t pixels = 0;  // pixels inside
  Box box;                   // see `bounding_box`
};

MaskExtent extent_of(const Rle& mask);
/// Returns the extent of a mask given as compressed counts. Throws Error like `decode_counts`.
MaskExtent extent_of(std::string_view counts, std::uint32_t height, std::uint32_t width);

/// Returns the union of masks of the same size. Throws Error if sizes differ.
Rle merge(std::span<const Rle> masks);
/// Returns the intersection of masks of the same size (pycocotools' merge with intersect). Throws
/// Error if sizes differ.
Rle intersect(std::span<const Rle> masks);
/// Returns the pixels of `mask` that are not in `other`. Throws Error if sizes differ.
Rle difference(const Rle& mask, const Rle& other);
/// Returns the part of the mask in a window of height x width pixels whose top left corner is at
/// (x, y) of the mask; empty beyond the mask. Crops, pads and shifts in one pass over the runs.
Rle window(const Rle& mask, std::int64_t x, std::int64_t y, std::uint32_t height,
           std::uint32_t width);
/// Rasterizes polygons like COCO's rleFrPoly (5x upsampling with its rounding) and returns their
/// union. Coordinates are double, as in pycocotools.
Rle from_polygons(std::span<const Polygon> polygons, std::uint32_t height, std::uint32_t width);

/// Returns the IoU of each detection with each ground truth, [D, G] row-major, computed on all
/// threads of the caller's arena. With a crowd, the union is the detection's area. Masks of
/// different sizes give -1, like COCO.
std::vector<double> mask_iou(std::span<const Rle> detections, std::span<const Rle> truths,
                             std::span<const std::uint8_t> crowd);

/// Rasterizes the part of polygons inside `box`, scaled to size x size, with COCO's rule, as
/// row-major bytes 0 or 1 (detectron2's mask target for polygons). The cost does not depend on the
/// image size.
void rasterize_in_box(std::span<const Polygon> polygons, const Box& box, int size,
                      std::uint8_t* out);
/// Crops a mask to `box` in size x size cells, sampling the nearest pixel at each cell's centre.
void crop_in_box(const Rle& mask, const Box& box, int size, std::uint8_t* out);

/// Pastes a detection's mask probabilities (size x size, row-major) into the image: bilinear
/// interpolation over the box in continuous coordinates with half-pixel centres (detectron2's paste
/// with grid_sample). Pixels are inside if the probability is >= `threshold`. Visits only rows and
/// columns under the box.
Rle paste(const float* probabilities, int size, const Box& box, std::uint32_t height,
          std::uint32_t width, float threshold = 0.5F);
/// Pastes with torchvision's rule (paste_masks_in_image): the mask is padded with zeros, the box is
/// enlarged accordingly and truncated to whole pixels. Pixels are inside if the probability is >
/// `threshold`.
Rle paste_framed(const float* probabilities, int size, const Box& box, std::uint32_t height,
                 std::uint32_t width, float threshold = 0.5F);

}  // namespace millrace::coco
