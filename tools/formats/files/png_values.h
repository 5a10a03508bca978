// PNG files as masks: the numbers that they hold, not their colours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "millrace/tools/formats/files/image_size.h"

namespace millrace::formats {

/// A PNG's pixels, row by row: grey values as they are stored (1 to 16 bits), positions in the
/// palette, or of a coloured one red << 16 | green << 8 | blue. Alpha is left out.
struct PngValues {
  std::uint32_t width = 0, height = 0;
  bool coloured = false;
  std::vector<std::uint32_t> values;  // height * width

  ImageSize size() const {
    return {static_cast<std::int32_t>(width), static_cast<std::int32_t>(height)};
  }
};

/// Throws Error naming the file: it cannot be read, is no PNG, is broken or too large.
PngValues read_png_values(const std::filesystem::path& file);
/// The same from bytes; the Error does not name a file.
PngValues parse_png_values(std::string_view bytes);

}  // namespace millrace::formats
