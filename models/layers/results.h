// What a detector found, moved from the network's pixels to those of the original images.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/onnx/detection.h"

namespace millrace {

/// How a mask of a box becomes one of the image.
enum class MaskPaste {
  grid,    // coco::paste, of the continuous box (detectron2)
  padded,  // coco::paste_framed, of the integer box (torchvision)
};
inline std::vector<std::string> value_names(MaskPaste) { return {"grid", "padded"}; }

/// Probabilities (size, size), row-major, as a mask in the image's pixels.
coco::Rle paste_mask(MaskPaste kind, const float* probabilities, std::int64_t size, const Box& box,
                     std::uint32_t height, std::uint32_t width);

/// How boxes become those of the original image.
enum class BoxScaling {
  exact,    // each axis by its own scale; clipped to the image
  uniform,  // both axes by the larger scale; not clipped (YOLOX)
};
inline std::vector<std::string> value_names(BoxScaling) { return {"exact", "uniform"}; }

/// Boxes scaled to the original images; masks (D over all images, M, M), probabilities,
/// pasted as `paste` says. An undefined `masks` gives objects without.
std::vector<std::vector<DetectedObject>> in_original_pixels(const Batch& batch,
                                                            const std::vector<Found>& found,
                                                            const at::Tensor& masks,
                                                            MaskPaste paste,
                                                            BoxScaling how = BoxScaling::exact);

/// The same in a graph, of the objects of `masks` (D, M, M), which may be undefined, and their
/// `images` (D). With `cells` = M, masks become bitmaps over the largest original image; 0: they
/// stay.
onnx::Objects in_original_pixels(const onnx::Images& images, const onnx::Objects& found,
                                 MaskPaste paste, std::int64_t cells,
                                 BoxScaling how = BoxScaling::exact);

}  // namespace millrace
