#include "millrace/dataflow/image/exif.h"

#include <cstddef>
#include <cstdint>
#include <opencv2/core.hpp>

namespace millrace {
namespace {

/// Bytes with an end and an order; beyond the end everything is zero.
class Bytes {
 public:
  Bytes(std::string_view data, bool big_endian) : data_(data), big_endian_(big_endian) {}

  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > data_.size() || data_.size() - at < size) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(data_[at + (big_endian_ ? i : size - 1 - i)]);
    return value;
  }

 private:
  std::string_view data_;
  bool big_endian_;
};

/// The orientation in the first directory of a TIFF block.
int tiff_orientation(std::string_view tiff) {
  constexpr std::uint32_t kOrientation = 0x0112;
  const Bytes bytes(tiff, tiff.starts_with("MM"));
  const std::size_t directory = bytes.number(4, 4);
  const auto entries = bytes.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) break;
    if (bytes.number(entry, 2) != kOrientation) continue;
    const auto value = bytes.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace

int exif_orientation(std::string_view jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  const Bytes bytes(jpeg, /*big_endian=*/true);
  // Segments: FF, kind, length (itself included), content; up to the scan (DA), where pixels start.
  for (std::size_t at = 2; at + 4 <= jpeg.size();) {
    const auto marker = bytes.number(at, 2);
    const auto length = bytes.number(at + 2, 2);
    if (marker < 0xFF01 || marker == 0xFFDA || length < 2) break;
    if (marker == 0xFFE1) {
      const auto content = jpeg.substr(at + 4, length - 2);
      if (content.starts_with(kExif)) return tiff_orientation(content.substr(kExif.size()));
    }
    at += 2 + length;
  }
  return 1;
}

cv::Mat upright(const cv::Mat& image, int orientation) {
  cv::Mat result;
  switch (orientation) {
    case 2:
      cv::flip(image, result, 1);
      break;
    case 3:
      cv::rotate(image, result, cv::ROTATE_180);
      break;
    case 4:
      cv::flip(image, result, 0);
      break;
    case 5:
      cv::transpose(image, result);
      break;
    case 6:
      cv::rotate(image, result, cv::ROTATE_90_CLOCKWISE);
      break;
    case 7:
      cv::transpose(image, result);
      cv::rotate(result, result, cv::ROTATE_180);
      break;
    case 8:
      cv::rotate(image, result, cv::ROTATE_90_COUNTERCLOCKWISE);
      break;
    default:
      result = image;
  }
  return result;
}

}  // namespace millrace
