// Masks of the values of an image, and connected components of a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "millrace/coco/masks/masks.h"
#include "millrace/tools/formats/files/png_values.h"

namespace millrace::formats {

/// Returns the mask of each value except 0; nullopt if there are more than `most` values.
std::optional<std::map<std::uint32_t, coco::Rle>> masks_of_values(const PngValues& picture,
                                                                  std::size_t most);

/// Returns the 8-connected components of a mask, ordered by their first pixel in column-major
/// order.
std::vector<coco::Rle> connected_parts(const coco::Rle& mask);

}  // namespace millrace::formats
