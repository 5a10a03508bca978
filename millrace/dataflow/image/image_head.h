// What the first bytes of an image file say of its size, before memory is taken for its pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

struct ImageHead {
  std::int64_t width = 0, height = 0;  // pixels, as they are written there: any number
  std::int64_t pixels_per_byte = 0;    // no file of this kind packs more into a byte; 0: no bound
};

/// Of a PNG, BMP, PBM, PGM, PPM or TIFF; nothing for other files and for a head that is cut off.
std::optional<ImageHead> read_image_head(std::string_view bytes);

/// Throws DataError naming `file` where no picture can have this size, or none of so many bytes.
void check_image_head(const ImageHead& head, std::size_t bytes, const std::string& file);

}  // namespace millrace
