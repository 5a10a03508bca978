#include "millrace/tools/formats/files/image_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace::formats {
namespace {

std::uint32_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

/// Reads the frame header of a JPEG: FF, C0 .. CF except tables, length, precision, height, width.
std::optional<ImageSize> jpeg_size(std::string_view bytes) {
  for (std::size_t at = 2; at + 9 < bytes.size();) {
    if (byte_at(bytes, at) != 0xFF) return {};
    const auto marker = byte_at(bytes, at + 1);
    if (marker == 0xFF) {  // fill bytes
      ++at;
      continue;
    }
    const auto two = [&](std::size_t i) {
      return byte_at(bytes, at + i) << 8 | byte_at(bytes, at + i + 1);
    };
    if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC)
      return ImageSize{static_cast<std::int32_t>(two(7)), static_cast<std::int32_t>(two(5))};
    if (marker == 0xDA || marker == 0xD9) return {};
    const bool is_bare = marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    at += is_bare ? 2 : 2 + two(2);
  }
  return {};
}

/// Reads the header of a WebP: RIFF, length, WEBP, then a chunk of one of three kinds.
std::optional<ImageSize> webp_size(std::string_view bytes) {
  if (bytes.size() < 30) return {};
  const auto number = [&](std::size_t at, std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | byte_at(bytes, at + i);
    return value;
  };
  const auto size = [](std::uint32_t width, std::uint32_t height) {
    return ImageSize{static_cast<std::int32_t>(width), static_cast<std::int32_t>(height)};
  };
  const auto chunk = bytes.substr(12, 4);
  if (chunk == "VP8 ") return size(number(26, 2) & 0x3FFF, number(28, 2) & 0x3FFF);
  if (chunk == "VP8X") return size(number(24, 3) + 1, number(27, 3) + 1);
  if (chunk != "VP8L") return {};
  const auto packed = number(21, 4);
  return size((packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1);
}

std::optional<ImageSize> stored_size(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xD8")) return jpeg_size(bytes);
  if (bytes.starts_with("RIFF") && bytes.size() > 12 && bytes.substr(8).starts_with("WEBP"))
    return webp_size(bytes);
  const auto head = read_image_head(bytes);
  if (!head) return {};
  return ImageSize{static_cast<std::int32_t>(std::min<std::int64_t>(head->width, INT32_MAX)),
                   static_cast<std::int32_t>(std::min<std::int64_t>(head->height, INT32_MAX))};
}

}  // namespace

std::optional<ImageSize> given_size(std::optional<double> width, std::optional<double> height) {
  const auto is_side = [](std::optional<double> side) {
    return side && *side >= 1 && *side < INT32_MAX;
  };
  if (!is_side(width) || !is_side(height)) return {};
  return ImageSize{static_cast<std::int32_t>(*width), static_cast<std::int32_t>(*height)};
}

std::optional<ImageSizes> read_sizes(std::string_view bytes) {
  const auto stored = stored_size(bytes);
  if (!stored || stored->width < 1 || stored->height < 1) return {};
  ImageSizes sizes{*stored, *stored};
  if (bytes.starts_with("\xFF\xD8") && exif_orientation(bytes) >= 5)
    std::swap(sizes.upright.width, sizes.upright.height);
  return sizes;
}

ImageSizes sizes_of_image(const std::filesystem::path& path) {
  constexpr std::uint64_t kHead = 64 << 10, kMost = std::uint64_t{1} << 31;
  const InputFile file(path);
  std::string bytes(std::min(file.size(), kHead), '\0');
  file.read(0, bytes);
  if (const auto sizes = read_sizes(bytes)) return *sizes;
  if (file.size() > kHead && file.size() < kMost) {  // long header, or directory at the end
    bytes.resize(file.size());
    file.read(0, bytes);
    if (const auto sizes = read_sizes(bytes)) return *sizes;
  }
  if (const auto format = unread_format(bytes))
    throw DataError(path.string(),
                    fmt::format("is {}, which is not supported; convert it to PNG", *format));
  throw DataError(path.string(), bytes.empty() ? "the file is empty"
                                               : "not a complete JPEG, PNG, WebP or TIFF file");
}

}  // namespace millrace::formats
