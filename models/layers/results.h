// What a detector found, moved from the network's pixels to those of the original images.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/onnx/detection.h"

namespace millrace {

/// Probabilities (size, size), row-major, as a mask in the image's pixels. `kind`: "grid":
/// coco::paste; "padded": coco::paste_framed.
coco::Rle paste_mask(const std::string& kind, const float* probabilities, std::int64_t size,
                     const Box& box, std::uint32_t height, std::uint32_t width);

/// How boxes become those of the original image.
enum class BoxScaling {
  exact,    // each axis by its own scale; clipped to the image
  uniform,  // both axes by the larger scale; not clipped (YOLOX)
};
inline std::vector<std::string> value_names(BoxScaling) { return {"exact", "uniform"}; }

/// Boxes scaled to the original images; masks (D over all images, M, M), probabilities,
/// pasted by the rule `paste` (see paste_mask). An undefined `masks` gives objects without.
std::vector<std::vector<DetectedObject>> in_original_pixels(const Batch& batch,
                                                            const std::vector<Found>& found,
                                                            const at::Tensor& masks,
                                                            const std::string& paste,
                                                            BoxScaling how = BoxScaling::exact);

/// The same in a graph, of the objects of `masks` (D, M, M), which may be undefined, and their
/// `images` (D). With `cells` = M, masks become bitmaps over the largest original image; 0: they
/// stay.
onnx::Objects in_original_pixels(const onnx::Images& images, const onnx::Objects& found,
                                 const std::string& paste, std::int64_t cells,
                                 BoxScaling how = BoxScaling::exact);

}  // namespace millrace
