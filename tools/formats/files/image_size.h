// Sizes of image files from their first bytes, without decoding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace millrace::formats {

struct ImageSize {
  std::int32_t width = 0, height = 0;  // in pixels
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// Returns the size in a label; nullopt unless both sides are present and valid.
std::optional<ImageSize> given_size(std::optional<double> width, std::optional<double> height);

/// The size of the stored pixels, and of the image after EXIF rotation.
struct ImageSizes {
  ImageSize stored, upright;
};

/// Returns the sizes of an image file. Throws Error with the file's name if it cannot be read or is
/// not a JPEG, PNG, WebP or TIFF.
ImageSizes sizes_of_image(const std::filesystem::path& file);

/// Returns the sizes from the first bytes of a file; nullopt if they are not enough. Thread-safe.
std::optional<ImageSizes> read_sizes(std::string_view bytes);

}  // namespace millrace::formats
