// JPEGs with an EXIF orientation.
#pragma once

#include <string>

namespace millrace::testing {

/// Returns the JPEG with an EXIF segment that has this orientation.
inline std::string with_orientation(const std::string& jpeg, char orientation) {
  using namespace std::string_literals;
  const auto exif =
      "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s + orientation + "\0\0\0\0\0\0"s;
  return jpeg.substr(0, 2) + "\xFF\xE1"s + '\0' + static_cast<char>(exif.size() + 2) + exif +
         jpeg.substr(2);
}

}  // namespace millrace::testing
