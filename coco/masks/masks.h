// Masks as run lengths and polygons, with the semantics of COCO's maskApi.c (pycocotools 2.0.11).
// Everything here is pure and may be called from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// A box as corners in pixels: x to the right, y down.
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

/// A binary mask of height x width pixels as run lengths in column-major order, zeros first.
struct Rle {
  std::uint32_t height = 0, width = 0;
  std::vector<std::uint32_t> counts;
  friend bool operator==(const Rle&, const Rle&) = default;
};

/// A closed polygon: x0 y0 x1 y1 ... in pixels. Double, since COCO's rasteriser rounds tenths of
/// pixels: 0.7 read as float falls on the other side, and masks would no longer equal pycocotools'.
using Polygon = std::vector<double>;

/// COCO's compressed counts (the `counts` string of results and crowds). `decode_counts` throws
/// Error with the byte that is wrong, or if the runs do not add up to height x width.
std::string encode_counts(const Rle& mask);
Rle decode_counts(std::string_view counts, std::uint32_t height, std::uint32_t width);
/// The same into a mask whose memory is reused; it is broken if that throws.
void decode_counts(std::string_view counts, std::uint32_t height, std::uint32_t width, Rle& mask);

/// From and to a bitmap, (height, width) row-major bytes, non-zero = inside.
Rle encode(const std::uint8_t* bitmap, std::uint32_t height, std::uint32_t width);
/// Writes height x width row-major bytes, 0 or 1.
void decode(const Rle& mask, std::uint8_t* bitmap);

/// Pixels inside.
std::uint64_t area(const Rle& mask);
/// The smallest box around the mask as COCO gives it: {x, y, x + w, y + h}; of an empty one all 0.
Box bounding_box(const Rle& mask);

/// A mask without its runs.
struct MaskExtent {
  std::uint32_t height = 0, width = 0;
  std::uint32_t pixels = 0;  // inside
  Box box;                   // as `bounding_box` gives it
};

MaskExtent extent_of(const Rle& mask);
/// The same of counts as text. Throws Error as `decode_counts`.
MaskExtent extent_of(std::string_view counts, std::uint32_t height, std::uint32_t width);

/// Union of masks of one size. Throws Error if sizes differ.
Rle merge(std::span<const Rle> masks);
/// Intersection of masks of one size (pycocotools' merge with intersect). Throws Error if they
/// differ.
Rle intersect(std::span<const Rle> masks);
/// The pixels of `mask` that are not in `other`. Throws Error if sizes differ.
Rle difference(const Rle& mask, const Rle& other);
/// The mask in a window of height x width pixels whose top left corner is at (x, y) of the mask,
/// empty beyond the mask. Crops, pads and moves at once, run by run.
Rle window(const Rle& mask, std::int64_t x, std::int64_t y, std::uint32_t height,
           std::uint32_t width);
/// Rasterises polygons as COCO's rleFrPoly does (5x upsampling, its rounding) and joins them.
/// Coordinates in double, as pycocotools has them.
Rle from_polygons(std::span<const Polygon> polygons, std::uint32_t height, std::uint32_t width);

/// IoU of each detection with each ground truth, (D, G) row-major, by all threads of the caller's
/// arena. With a crowd, the union is the detection's area. Masks of different sizes give -1, as
/// COCO.
std::vector<double> mask_iou(std::span<const Rle> detections, std::span<const Rle> truths,
                             std::span<const std::uint8_t> crowd);

/// The part of polygons inside `box`, scaled to size x size and rasterised by COCO's rule: 0 or 1
/// bytes row-major (detectron2's polygon mask target), at a cost independent of the image's size.
void rasterize_in_box(std::span<const Polygon> polygons, const Box& box, int size,
                      std::uint8_t* out);
/// The same for run lengths: samples the mask at each cell's centre (nearest pixel).
void crop_in_box(const Rle& mask, const Box& box, int size, std::uint8_t* out);

/// Pastes a detection's mask probabilities (size x size, row-major) into the image: bilinear over
/// the box, continuous coordinates with half-pixel centres (detectron2's grid_sample paste), inside
/// from `threshold` on. Only rows and columns under the box are visited.
Rle paste(const float* probabilities, int size, const Box& box, std::uint32_t height,
          std::uint32_t width, float threshold = 0.5F);
/// The same by torchvision's rule (paste_masks_in_image): a frame of zeros around the mask, the box
/// enlarged as much and cut to whole pixels, inside above `threshold`.
Rle paste_framed(const float* probabilities, int size, const Box& box, std::uint32_t height,
                 std::uint32_t width, float threshold = 0.5F);

}  // namespace millrace::coco
