// Makes small uncompressed TIFF files.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/scratch.h"

namespace millrace::testing {

/// Returns an uncompressed TIFF file with these RGB pixels, [height, width, 3].
inline std::string tiff_of(std::string_view rgb, std::uint32_t width, std::uint32_t height) {
  constexpr std::uint32_t kEntries = 9, kBits = 8 + 2 + 12 * kEntries + 4, kPixels = kBits + 6;
  std::string bytes = std::string("II*\0", 4) + little_endian(8, 4) + little_endian(kEntries, 2);
  const auto add = [&](int tag, std::uint32_t value, int count = 1) {
    const int type = count > 1 ? 3 : 4;  // SHORT for lists, else LONG
    bytes += little_endian(static_cast<std::uint64_t>(tag), 2) +
             little_endian(static_cast<std::uint64_t>(type), 2) +
             little_endian(static_cast<std::uint64_t>(count), 4) + little_endian(value, 4);
  };
  add(256, width);
  add(257, height);
  add(258, kBits, 3);
  add(259, 1);  // no compression
  add(262, 2);  // RGB
  add(273, kPixels);
  add(277, 3);  // samples per pixel
  add(278, height);
  add(279, 3 * width * height);
  bytes += little_endian(0, 4);
  for (int c = 0; c < 3; ++c) bytes += little_endian(8, 2);
  return bytes.append(rgb);
}

}  // namespace millrace::testing
