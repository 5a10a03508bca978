// The first bytes of an image file: its size, before memory is taken, and its orientation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

struct ImageHead {
  std::int64_t width = 0, height = 0;  // pixels, as written there: any number
  std::int64_t pixels_per_byte = 0;    // no file of this kind packs more into a byte; 0: no bound
};

/// The head of a PNG or TIFF; nullopt for other files or if it is cut off.
std::optional<ImageHead> read_image_head(std::string_view bytes);

/// "a GIF": the format of a picture file if it is known but not read; nullopt for others.
std::optional<std::string_view> unread_format(std::string_view bytes);

/// Whether a file's name ends as those of images do, also of a format that is not read: ".JPG".
bool is_image_name(std::string_view name);

/// Pillow's limit, above which it takes an image for a decompression bomb.
inline constexpr std::int64_t kMaxPixels = 178'956'970;

/// Throws DataError naming `file` if no picture, or none in so few bytes, can have this size, or if
/// it has more than `max_pixels` (0 = unlimited).
void check_image_head(const ImageHead& head, std::size_t bytes, const std::string& file,
                      std::int64_t max_pixels = kMaxPixels);

/// The EXIF orientation, 1 .. 8 (1: upright or not known; 5 .. 8 exchange width and height).
int exif_orientation(std::string_view jpeg);

}  // namespace millrace
