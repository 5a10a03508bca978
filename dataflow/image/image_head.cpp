#include "millrace/dataflow/image/image_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

// No detector processes larger images.
constexpr std::int64_t kMostSide = std::int64_t{1} << 20, kMostPixels = std::int64_t{1} << 30;

/// Reads numbers in a file's bytes; numbers beyond the end are zero.
class Reader {
 public:
  Reader(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  std::uint32_t number(std::size_t at, std::size_t count) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto place = at + (big_endian_ ? i : count - 1 - i);
      value = value << 8 | (place < bytes_.size() ? static_cast<unsigned char>(bytes_[place]) : 0);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

std::optional<ImageHead> read_png(std::string_view bytes) {
  if (bytes.size() < 24 || bytes.substr(12, 4) != "IHDR") return {};
  const Reader read(bytes, /*big_endian=*/true);
  // Deflate expands a byte to at most 1032 bytes, and a byte holds eight pixels of one bit.
  return ImageHead{read.number(16, 4), read.number(20, 4), 1032 * 8};
}

std::optional<ImageHead> read_tiff(std::string_view bytes, bool big_endian) {
  const Reader read(bytes, big_endian);
  constexpr std::uint32_t kWidth = 256, kHeight = 257, kShort = 3;
  const std::size_t directory = read.number(4, 4), entries = read.number(directory, 2);
  ImageHead head;
  for (std::size_t i = 0; i < entries; ++i) {
    const auto entry = directory + 2 + 12 * i;
    const auto tag = read.number(entry, 2);
    const auto value = read.number(entry + 8, read.number(entry + 2, 2) == kShort ? 2 : 4);
    if (tag == kWidth) head.width = value;
    if (tag == kHeight) head.height = value;
  }
  if (head.width == 0 || head.height == 0) return {};
  return head;
}

/// Returns the orientation in the first directory of a TIFF block.
int tiff_orientation(std::string_view tiff) {
  constexpr std::uint32_t kOrientation = 0x0112;
  const Reader read(tiff, tiff.starts_with("MM"));
  const std::size_t directory = read.number(4, 4), entries = read.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) break;
    if (read.number(entry, 2) != kOrientation) continue;
    const auto value = read.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace

std::optional<ImageHead> read_image_head(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1A\n")) return read_png(bytes);
  if (bytes.starts_with(std::string_view("II*\0", 4))) return read_tiff(bytes, false);
  if (bytes.starts_with(std::string_view("MM\0*", 4))) return read_tiff(bytes, true);
  return {};
}

std::optional<std::string_view> unread_format(std::string_view bytes) {
  using namespace std::string_view_literals;
  struct Format {
    std::string_view signature, name;
    std::size_t at = 0;
  };
  static constexpr std::array kFormats = {Format{"GIF8"sv, "a GIF"sv},
                                          Format{"BM"sv, "a BMP"sv},
                                          Format{"\0\0\0\x0CjP  "sv, "a JPEG 2000"sv},
                                          Format{"\xFF\x4F\xFF\x51"sv, "a JPEG 2000"sv},
                                          Format{"\0\0\0\x0CJXL "sv, "a JPEG XL"sv},
                                          Format{"\xFF\x0A"sv, "a JPEG XL"sv},
                                          Format{"ftypavi"sv, "an AVIF"sv, 4},
                                          Format{"ftyphei"sv, "a HEIC"sv, 4},
                                          Format{"ftypmif1"sv, "a HEIC"sv, 4},
                                          Format{"\x76\x2F\x31\x01"sv, "an OpenEXR"sv},
                                          Format{"#?RADIANCE"sv, "a Radiance HDR"sv},
                                          Format{"#?RGBE"sv, "a Radiance HDR"sv},
                                          Format{"\x59\xA6\x6A\x95"sv, "a Sun raster"sv}};
  for (const auto& [signature, name, at] : kFormats)
    if (bytes.size() > at && bytes.substr(at).starts_with(signature)) return name;
  // P1 .. P7, PF and Pf, then white space.
  if (bytes.size() > 2 && bytes[0] == 'P' &&
      "1234567Ff"sv.find(bytes[1]) != std::string_view::npos &&
      " \t\r\n"sv.find(bytes[2]) != std::string_view::npos)
    return "a PNM (PBM, PGM, PPM, PAM or PFM)";
  return {};
}

bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> kKnown = {".bmp", ".jpeg", ".jpg",  ".png",
                                                      ".ppm", ".tif",  ".tiff", ".webp"};
  const auto extension = name.substr(std::min(name.rfind('.'), name.size()));
  return std::ranges::count(kKnown, lower_case(extension)) > 0;
}

void check_image_head(const ImageHead& head, std::size_t bytes, const std::string& file,
                      std::int64_t max_pixels) {
  const auto& [width, height, packed] = head;
  const auto says = fmt::format("declares {} x {} pixels, but ", width, height);
  if (width < 1 || height < 1) throw DataError(file, says + "an image must not be empty");
  if (width > kMostSide || height > kMostSide || width > kMostPixels / height)
    throw DataError(file, fmt::format("{}the maximum is {} per side and {} in total", says,
                                      kMostSide, kMostPixels));
  if (packed > 0 && width > packed * static_cast<std::int64_t>(bytes) / height)
    throw DataError(file, fmt::format("{}has only {} bytes", says, bytes));
  if (max_pixels > 0 && width > max_pixels / height)
    throw DataError(file, fmt::format("is {} x {} pixels, more than data.max_pixels = {}; raise "
                                      "the limit if the image is valid (0 = unlimited)",
                                      width, height, max_pixels));
}

int exif_orientation(std::string_view jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  const Reader read(jpeg, /*big_endian=*/true);
  // Segments are FF, kind, length (including itself) and content, up to the scan (DA), where pixels
  // start.
  for (std::size_t at = 2; at + 4 <= jpeg.size();) {
    const auto marker = read.number(at, 2), length = read.number(at + 2, 2);
    if (marker < 0xFF01 || marker == 0xFFDA || length < 2) break;
    if (marker == 0xFFE1) {
      const auto content = jpeg.substr(at + 4, length - 2);
      if (content.starts_with(kExif)) return tiff_orientation(content.substr(kExif.size()));
    }
    at += 2 + length;
  }
  return 1;
}

}  // namespace millrace
