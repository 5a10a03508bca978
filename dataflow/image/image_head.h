// The header of an image file: its size, before memory is allocated, and its orientation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

struct ImageHead {
  std::int64_t width = 0, height = 0;  // pixels, as stored in the file: any number
  std::int64_t pixels_per_byte = 0;    // maximum for this kind of file; 0 = unlimited
};

/// Reads the header of a PNG or TIFF; returns nullopt for other files or if it is truncated.
std::optional<ImageHead> read_image_head(std::string_view bytes);

/// Returns e.g. "a GIF" for a known format that is not supported; nullopt for others.
std::optional<std::string_view> unread_format(std::string_view bytes);

/// Returns true for a file name with an image extension, in any case and also of an unsupported
/// format.
bool is_image_name(std::string_view name);

/// Pillow's limit, above which it treats an image as a decompression bomb.
inline constexpr std::int64_t kMaxPixels = 178'956'970;

/// Throws DataError with `file` if no image, or none of this file size, can have these dimensions,
/// or if it has more than `max_pixels` (0 = unlimited).
void check_image_head(const ImageHead& head, std::size_t bytes, const std::string& file,
                      std::int64_t max_pixels = kMaxPixels);

/// Returns the EXIF orientation, 1 .. 8 (1 = upright or unknown; 5 .. 8 exchange width and height).
int exif_orientation(std::string_view jpeg);

}  // namespace millrace
