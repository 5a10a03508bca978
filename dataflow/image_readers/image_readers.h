// The interface of image_readers.so, which decodes all formats except the JPEGs that TurboJPEG
// decodes. It is a separate shared object, opened on first use, so that programs start without
// libpng, libwebp, libtiff and their dependencies. It uses no other part of Millrace and no OpenCV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace millrace {

/// Allocates the memory for an image of this size, in pixels, both above 0: width * height * 3
/// bytes, row by row from the top. A reader calls it once, before it allocates memory of that order
/// itself; exceptions propagate to the reader's caller.
using PictureRoom = std::function<std::uint8_t*(int width, int height)>;

/// Decodes a file's bytes to 8-bit RGB in the memory that `room` returns: the upper eight of 16
/// bits, grey three times, without alpha; TIFF as libtiff converts it to RGBA. Throws
/// std::runtime_error with the reason. Thread-safe.
using ReadPicture = void(std::string_view bytes, const PictureRoom& room);

/// Name of the function in the shared object, of type ReadPicture.
inline constexpr const char* kReadPicture = "millrace_read_picture";

/// Converts Adobe's inverted CMYK to RGB, rounded as in OpenCV.
inline void convert_inks(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t pixels) {
  for (; pixels > 0; --pixels, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; ++c)
      rgb[c] = static_cast<std::uint8_t>(cmyk[3] - ((255 - cmyk[c]) * cmyk[3] >> 8));
}

}  // namespace millrace
