// Sizes of image files from their first bytes, without decoding.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace millrace::formats {

struct ImageSize {
  std::int32_t width = 0, height = 0;  // pixels
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// The size that a label gives; nullopt unless both sides are given and can be those of an image.
std::optional<ImageSize> given_size(std::optional<double> width, std::optional<double> height);

/// The size of the stored pixels, and of the picture turned by EXIF.
struct ImageSizes {
  ImageSize stored, upright;
};

/// Throws Error naming the file: it cannot be read, or is not a JPEG, PNG, WebP or TIFF.
ImageSizes sizes_of_image(const std::filesystem::path& file);

/// The same from the first bytes of a file; nullopt if they do not suffice. Any thread.
std::optional<ImageSizes> read_sizes(std::string_view bytes);

}  // namespace millrace::formats
