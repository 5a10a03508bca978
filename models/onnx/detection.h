// Inputs and outputs of a detector's graph, for Detector::add_to.
#pragma once

#include "millrace/models/onnx/graph.h"

namespace millrace::onnx {

/// N images in the layout of a Batch: uint8 RGB pixels, zero beyond each image's size.
struct Images {
  Value pixels;     // (N, H, W, 3) uint8
  Value sizes;      // (N, 2) int64: unpadded height and width
  Value scales;     // (N, 2) float: pixels per original pixel, x and y
  Value originals;  // (N, 2) int64: height and width of the original images
  /// A single image is padded to multiples of this.
  std::int64_t divisor = 32;
  /// True if there is one image and it fills the pixels.
  bool single = false;
};

/// D objects of all images, ordered by image, then best score first.
struct Objects {
  Value boxes;   // (D, 4) float: in pixels of the original images
  Value scores;  // (D) float
  Value labels;  // (D) int64
  Value images;  // (D) int64: index of the object's image
  /// (D, M, M) float: probabilities over the boxes; if pasted, (D, H, W) uint8, 1 inside, over
  /// images as large as the largest original; undefined = no masks
  Value masks;
};

}  // namespace millrace::onnx
