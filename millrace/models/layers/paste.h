// Mask probabilities of a detection put back into its image.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/coco/masks/masks.h"

namespace millrace {

/// probabilities: (size, size) row-major; box in the image's pixels. "grid": coco::paste. "padded":
/// torchvision's paste_masks_in_image, which frames the mask with zeros, cuts the box to integers
/// and resizes.
coco::Rle paste_mask(const std::string& kind, const float* probabilities, std::int64_t size,
                     const Box& box, std::uint32_t height, std::uint32_t width);

}  // namespace millrace
