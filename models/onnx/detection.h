// What a detector's graph takes and gives: Detector::add_to.
#pragma once

#include "millrace/models/onnx/graph.h"

namespace millrace::onnx {

/// N images as a Batch has them: uint8 RGB pixels that are zero beyond each image's size.
struct Images {
  Value pixels;     // (N, H, W, 3) uint8
  Value sizes;      // (N, 2) int64: true height and width
  Value scales;     // (N, 2) float: pixels per original pixel, x and y
  Value originals;  // (N, 2) int64: height and width of the original images
  /// What a single image is padded to multiples of.
  std::int64_t divisor = 32;
  /// There is one image, and it fills the pixels.
  bool single = false;
};

/// D objects of all images together, image after image, best score first.
struct Objects {
  Value boxes;   // (D, 4) float: pixels of the original images
  Value scores;  // (D) float
  Value labels;  // (D) int64
  Value images;  // (D) int64: whose they are
  /// (D, M, M) float: probabilities over the boxes; pasted: (D, H, W) uint8, 1 inside, over images
  /// as large as the largest original; undefined: no masks
  Value masks;
};

}  // namespace millrace::onnx
