// Converts detections from network pixels to the pixels of the original images.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/onnx/detection.h"

namespace millrace {

/// The conversion of a box's mask to a mask of the image.
enum class MaskPaste {
  grid,    // coco::paste, with the continuous box (detectron2)
  padded,  // coco::paste_framed, with the integer box (torchvision)
};
inline std::vector<std::string> value_names(MaskPaste) { return {"grid", "padded"}; }

/// Pastes probabilities (size, size), row-major, into a mask in the image's pixels.
coco::Rle paste_mask(MaskPaste kind, const float* probabilities, std::int64_t size, const Box& box,
                     std::uint32_t height, std::uint32_t width);

/// The conversion of boxes to the original image.
enum class BoxScaling {
  exact,    // each axis by its own scale, clipped to the image
  uniform,  // both axes by the larger scale, not clipped (YOLOX)
};
inline std::vector<std::string> value_names(BoxScaling) { return {"exact", "uniform"}; }

/// Returns the objects of each image: boxes scaled to the original image, and `masks` (D over all
/// images, M, M), probabilities, pasted as `paste` selects. Undefined `masks` = no masks.
std::vector<std::vector<DetectedObject>> in_original_pixels(const Batch& batch,
                                                            const std::vector<Found>& found,
                                                            const at::Tensor& masks,
                                                            MaskPaste paste,
                                                            BoxScaling how = BoxScaling::exact);

/// Adds the nodes for objects with masks (D, M, M), which may be undefined, and image indices (D).
/// With `cells` = M, masks become bitmaps over the largest original image; 0 leaves them as they
/// are.
onnx::Objects in_original_pixels(const onnx::Images& images, const onnx::Objects& found,
                                 MaskPaste paste, std::int64_t cells,
                                 BoxScaling how = BoxScaling::exact);

}  // namespace millrace
