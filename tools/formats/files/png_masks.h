// Reads PNG files as masks: their stored values instead of colours, the mask of each value, and its
// connected components.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "millrace/coco/masks/masks.h"
#include "millrace/tools/formats/files/image_size.h"

namespace millrace::formats {

/// The pixels of a PNG, row by row: stored grey values (1 to 16 bits), palette indices, or for a
/// colour PNG red << 16 | green << 8 | blue. Alpha is discarded.
struct PngValues {
  std::uint32_t width = 0, height = 0;
  bool coloured = false;
  std::vector<std::uint32_t> values;  // height * width

  ImageSize size() const {
    return {static_cast<std::int32_t>(width), static_cast<std::int32_t>(height)};
  }
};

/// Reads a PNG file. Throws Error with the file's name if it cannot be read, is not a PNG, is
/// damaged or is too large.
PngValues read_png_values(const std::filesystem::path& file);
/// Parses the bytes of a PNG file. The Error does not contain a file name.
PngValues parse_png_values(std::string_view bytes);

/// Returns the mask of each value except 0; nullopt if there are more than `most` values.
std::optional<std::map<std::uint32_t, coco::Rle>> masks_of_values(const PngValues& picture,
                                                                  std::size_t most);

/// Returns the 8-connected components of a mask, ordered by their first pixel in column-major
/// order.
std::vector<coco::Rle> connected_parts(const coco::Rle& mask);

}  // namespace millrace::formats
