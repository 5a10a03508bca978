// What image_readers.so does: pictures of every format but the JPEGs that TurboJPEG decodes. It is
// an object of its own, opened on first use, so that programs start without libpng, libwebp,
// libtiff and what these bring. It uses no other part of Millrace and no OpenCV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace millrace {

/// Room for a picture of this size, in pixels, both above 0: width * height * 3 bytes, rows one
/// after another, from the top. A reader asks for it once, before it takes memory of that order;
/// what this throws goes through to the reader's caller.
using PictureRoom = std::function<std::uint8_t*(int width, int height)>;

/// Decodes a file's bytes to 8-bit RGB in the room asked for: the upper eight of 16 bits, grey
/// three times, without alpha; TIFF as libtiff converts it to RGBA. Throws std::runtime_error with
/// the reason. Any thread.
using ReadPicture = void(std::string_view bytes, const PictureRoom& room);

/// The name of the function in the object, of type ReadPicture.
inline constexpr const char* kReadPicture = "millrace_read_picture";

/// RGB from inks as Adobe writes them, inverted; rounded as OpenCV does.
inline void convert_inks(const std::uint8_t* cmyk, std::uint8_t* rgb, std::size_t pixels) {
  for (; pixels > 0; --pixels, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; ++c)
      rgb[c] = static_cast<std::uint8_t>(cmyk[3] - ((255 - cmyk[c]) * cmyk[3] >> 8));
}

}  // namespace millrace
