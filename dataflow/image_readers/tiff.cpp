#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/dataflow/image_readers/readers.h"

namespace millrace {
namespace {

// Limits of a strip or tile, as in OpenCV.
constexpr tmsize_t kMostMemory = tmsize_t{2} << 30;
constexpr std::size_t kMostPixels = std::size_t{1} << 28, kMostSide = std::size_t{1} << 24;
// A tile may be larger than its image, but its memory must be in proportion to it.
constexpr std::size_t kUsualPixels = std::size_t{1} << 24, kMostPictures = 4;
constexpr std::size_t kMostBytesPerPixel = 16;  // four channels of 32 bits

/// A file during decoding.
class TiffFile {
 public:
  explicit TiffFile(std::string_view bytes) : bytes_(bytes) {
    const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(
        TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostMemory);
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep, this);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore, nullptr);
    tiff_ = TIFFClientOpenExt(
        "", "rm", this, read, [](auto...) { return tmsize_t{0}; }, seek, [](auto) { return 0; },
        [](thandle_t handle) { return toff_t{self(handle).bytes_.size()}; }, nullptr, nullptr,
        options.get());
    check(tiff_ != nullptr);
  }
  ~TiffFile() { TIFFClose(tiff_); }
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  operator TIFF*() const { return tiff_; }

  /// Returns a number that the file must contain, or that defaults to `otherwise`.
  template <class T>
  T number(std::uint32_t tag) const {
    T value = 0;
    check(TIFFGetField(tiff_, tag, &value) == 1);
    return value;
  }
  template <class T>
  T number(std::uint32_t tag, T otherwise) const {
    TIFFGetField(tiff_, tag, &otherwise);
    return otherwise;
  }

  /// Throws libtiff's first error message unless `done`.
  void check(bool done) const {
    if (done) return;
    throw std::runtime_error(std::string("broken TIFF: ") + (*why_ ? why_ : "a field is missing"));
  }

 private:
  static TiffFile& self(thandle_t handle) { return *static_cast<TiffFile*>(handle); }

  static int keep(TIFF*, void* handle, const char*, const char* format, va_list values) {
    auto& why = self(handle).why_;
    if (!*why) std::vsnprintf(why, sizeof why, format, values);
    return 1;
  }
  static int ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }

  static tmsize_t read(thandle_t handle, void* to, tmsize_t count) {
    auto& file = self(handle);
    const auto size = std::min(static_cast<std::size_t>(std::max<tmsize_t>(count, 0)),
                               file.bytes_.size() - file.at_);
    std::memcpy(to, file.bytes_.data() + file.at_, size);
    file.at_ += size;
    return static_cast<tmsize_t>(size);
  }

  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    auto& file = self(handle);
    const toff_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.at_ : file.bytes_.size();
    file.at_ = static_cast<std::size_t>(std::min<toff_t>(from + offset, file.bytes_.size()));
    return file.at_;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  TIFF* tiff_ = nullptr;
  char why_[256] = {};
};

/// The address of each stored pixel (y, x) in the image.
struct Places {
  std::uint8_t* first;
  std::ptrdiff_t down, right;  // bytes

  std::uint8_t* at(std::size_t y, std::size_t x) const {
    return first + down * static_cast<std::ptrdiff_t>(y) + right * static_cast<std::ptrdiff_t>(x);
  }
};

/// Allocates the memory for an image stored as height x width and rotates it by its orientation;
/// libtiff has already mirrored it.
Places places(std::size_t height, std::size_t width, unsigned orientation,
              const PictureRoom& room) {
  const auto h = static_cast<std::ptrdiff_t>(height), w = static_cast<std::ptrdiff_t>(width);
  if (orientation < ORIENTATION_LEFTTOP)
    return {room(static_cast<int>(width), static_cast<int>(height)), 3 * w, 3};
  auto* pixels = room(static_cast<int>(height), static_cast<int>(width));
  if (orientation == ORIENTATION_LEFTTOP || orientation == ORIENTATION_RIGHTBOT)
    return {pixels, 3, 3 * h};
  return {pixels + 3 * (h * w - 1), -3, -3 * h};
}

}  // namespace

void read_tiff(std::string_view bytes, const PictureRoom& room) {
  TiffFile file(bytes);  // not const, since libtiff's callbacks modify it
  const std::size_t width = file.number<std::uint32_t>(TIFFTAG_IMAGEWIDTH),
                    height = file.number<std::uint32_t>(TIFFTAG_IMAGELENGTH);
  if (width < 1 || height < 1 || width > kMostSide || height > kMostSide)
    throw std::runtime_error("broken TIFF: invalid image size");
  file.number<std::uint16_t>(TIFFTAG_PHOTOMETRIC);
  char why[1024];
  if (!TIFFRGBAImageOK(file, why))
    throw std::runtime_error(std::string("unsupported kind of TIFF: ") + why);

  const bool tiled = TIFFIsTiled(file);
  std::size_t part_width = width, part_height = height;
  if (tiled) {
    part_width = file.number<std::uint32_t>(TIFFTAG_TILEWIDTH);
    part_height = file.number<std::uint32_t>(TIFFTAG_TILELENGTH);
  } else if (const auto rows = file.number<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, 0); rows > 0) {
    part_height = std::min<std::size_t>(rows, height);
  }
  const auto most_pixels =
      std::min(kMostPixels, std::max(kUsualPixels, kMostPictures * width * height));
  const std::uint64_t part_bytes = tiled ? TIFFTileSize64(file) : TIFFStripSize64(file);
  if (part_width < 1 || part_height < 1 || part_width > kMostSide || part_height > kMostSide ||
      part_width * part_height > most_pixels ||
      part_bytes > kMostBytesPerPixel * part_width * part_height)
    throw std::runtime_error("unsupported kind of TIFF: its strips or tiles are too large");

  const auto orientation = file.number<std::uint16_t>(TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  const bool bottom_first =
      orientation == ORIENTATION_BOTRIGHT || orientation == ORIENTATION_BOTLEFT ||
      orientation == ORIENTATION_RIGHTBOT || orientation == ORIENTATION_LEFTBOT;
  const auto target = places(height, width, orientation > 8 ? 1U : orientation, room);
  std::vector<std::uint32_t> part(part_width * part_height);  // RGBA, last row first
  for (std::size_t top = 0; top < height; top += part_height)
    for (std::size_t left = 0; left < width; left += part_width) {
      const auto x = static_cast<std::uint32_t>(left), y = static_cast<std::uint32_t>(top);
      file.check(tiled ? TIFFReadRGBATile(file, x, y, part.data())
                       : TIFFReadRGBAStrip(file, y, part.data()));
      const auto rows = std::min(part_height, height - top),
                 columns = std::min(part_width, width - left);
      const auto first = bottom_first ? height - top - rows : top;
      const auto* line = part.data() + (tiled ? part_height - rows : 0) * part_width;
      for (std::size_t i = 0; i < rows; ++i, line += part_width)
        for (std::size_t k = 0; k < columns; ++k) {
          auto* pixel = target.at(first + rows - 1 - i, left + k);
          pixel[0] = static_cast<std::uint8_t>(TIFFGetR(line[k]));
          pixel[1] = static_cast<std::uint8_t>(TIFFGetG(line[k]));
          pixel[2] = static_cast<std::uint8_t>(TIFFGetB(line[k]));
        }
    }
}

}  // namespace millrace
