// Masks of the values in a picture, and connected parts of a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "millrace/coco/masks/masks.h"
#include "millrace/tools/formats/files/png_values.h"

namespace millrace::formats {

/// The mask of each value but 0; nullopt if there are more than `most` of them.
std::optional<std::map<std::uint32_t, coco::Rle>> masks_of_values(const PngValues& picture,
                                                                  std::size_t most);

/// The parts of a mask whose pixels touch, also at corners, by their first pixel down the columns.
std::vector<coco::Rle> connected_parts(const coco::Rle& mask);

}  // namespace millrace::formats
