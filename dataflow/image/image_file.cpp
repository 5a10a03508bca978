#include "millrace/dataflow/image/image_file.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <new>
#include <opencv2/core.hpp>
#include <stdexcept>
#include <utility>

#include "millrace/base/events/event_ring.h"
#include "millrace/base/files.h"
#include "millrace/base/own_folders.h"
#include "millrace/dataflow/image_readers/image_readers.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = INT32_MAX;  // maximum file size; no image needs more

struct DestroyHandle {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using UniqueDecompressor = std::unique_ptr<void, DestroyHandle>;

/// Returns this thread's decompressor for `strict` (stop at the first warning), which is reused
/// from call to call. After a broken file it may decode the next one wrong, so it is then
/// discarded.
UniqueDecompressor& decompressor(bool strict) {
  static thread_local std::array<UniqueDecompressor, 2> handles;
  auto& handle = handles[strict];
  if (!handle) handle.reset(tjInitDecompress());
  if (!handle) throw Error(fmt::format("cannot start TurboJPEG: {}", tjGetErrorStr()));
  return handle;
}

[[noreturn]] void throw_broken(const std::string& file, UniqueDecompressor& handle) {
  const std::string why = tjGetErrorStr2(handle.get());
  handle.reset();
  throw DataError(file, fmt::format("broken JPEG: {}", why));
}

/// Returns true if the last call failed because the file ends too early.
bool has_met_end(const UniqueDecompressor& handle) {
  return std::string_view(tjGetErrorStr2(handle.get())).find("Premature end of JPEG file") !=
         std::string_view::npos;
}

const unsigned char* data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// No JPEG packs more pixels into a byte: a block of 64 takes about a bit.
constexpr std::int64_t kMostPixelsPerByte = 4096;

/// A JPEG that TurboJPEG can decode.
struct Jpeg {
  cv::Size size;
  bool cmyk = false;  // four inks, which are not decoded to RGB directly
};

/// Reads the header of a JPEG; returns nullopt if TurboJPEG cannot decode it.
std::optional<Jpeg> read_jpeg_head(std::string_view bytes, const std::string& file, bool strict,
                                   std::int64_t max_pixels) {
  if (!bytes.starts_with("\xFF\xD8")) return {};
  auto& handle = decompressor(strict);
  cv::Size size;
  int subsampling = 0, colours = 0;
  const int status = tjDecompressHeader3(handle.get(), data(bytes), bytes.size(), &size.width,
                                         &size.height, &subsampling, &colours);
  const bool only_warned = status != 0 && tjGetErrorCode(handle.get()) == TJERR_WARNING;
  if (only_warned && strict && has_met_end(handle)) throw_broken(file, handle);
  if (size.empty() || (status != 0 && !only_warned)) {
    handle.reset();
    return {};
  }
  check_image_head({size.width, size.height, kMostPixelsPerByte}, bytes.size(), file, max_pixels);
  return Jpeg{size, colours == TJCS_CMYK || colours == TJCS_YCCK};
}

cv::Mat rgb_of(const cv::Mat& cmyk) {
  cv::Mat image(cmyk.size(), CV_8UC3);
  convert_inks(cmyk.data, image.data, image.total());
  return image;
}

/// Decodes with image_readers.so (own_folders.h), which the first call opens and which uses libpng,
/// libwebp and libtiff. `check` is called with the size before memory is allocated.
cv::Mat read_picture(std::string_view bytes, const std::function<void(cv::Size)>& check) {
  static auto* read = reinterpret_cast<ReadPicture*>(
      open_symbol(own_object("image_readers.so"), kReadPicture,
                  "images other than JPEG need {}, which cannot be opened: {}; build or install it "
                  "with the program"));
  cv::Mat image;
  read(bytes, [&](int width, int height) {
    check({width, height});
    image.create(height, width, CV_8UC3);
    return image.data;
  });
  return image;
}

/// Returns true if a JPEG with a TurboJPEG warning ends too early, since TurboJPEG reports only its
/// first warning.
bool ends_early(std::string_view bytes) {
  try {
    read_picture(bytes, [](cv::Size) {});
    return false;
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error&) {
    return true;
  }
}

/// Decodes at `size`. If `strict`, stops at the first warning and continues only if the file is
/// complete.
cv::Mat decode_turbo(std::string_view bytes, const std::string& file, const Jpeg& jpeg,
                     cv::Size size, bool strict) {
  auto& handle = decompressor(strict);
  cv::Mat image(size, jpeg.cmyk ? CV_8UC4 : CV_8UC3);
  const auto decode = [&](int flags) {
    return tjDecompress2(handle.get(), data(bytes), bytes.size(), image.data, size.width,
                         static_cast<int>(image.step), size.height,
                         jpeg.cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT | flags) == 0;
  };
  const auto refused = [&] {
    return tjGetErrorCode(handle.get()) == TJERR_FATAL || (strict && has_met_end(handle));
  };
  if (!decode(strict ? TJFLAG_STOPONWARNING : 0)) {
    if (refused()) throw_broken(file, handle);
    if (strict && ends_early(bytes)) throw DataError(file, "broken JPEG: the file is truncated");
    if (strict && !decode(0) && refused()) throw_broken(file, handle);
  }
  return jpeg.cmyk ? rgb_of(image) : image;
}

/// Decodes the formats that TurboJPEG does not. `check` is called with the size before memory is
/// allocated.
cv::Mat decode_other(std::string_view bytes, const std::string& file, std::int64_t max_pixels,
                     const std::function<void(cv::Size)>& check) {
  if (bytes.empty()) throw DataError(file, "the file is empty");
  if (const auto format = unread_format(bytes))
    throw DataError(file, fmt::format("is {}, which is not supported; convert it to PNG", *format));
  try {
    return read_picture(bytes, [&](cv::Size size) {
      check_image_head({size.width, size.height}, bytes.size(), file, max_pixels);
      check(size);
    });
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& problem) {
    throw DataError(file, problem.what());
  }
}

/// Returns the smallest decoding size of a JPEG that is at least `enough`: its own, or the half,
/// quarter or eighth for which libjpeg-turbo has fast transforms (half takes 0.9 of the time of the
/// whole, five to seven eighths 1.1 to 1.6). The divisor must divide evenly, since libjpeg-turbo
/// would otherwise shift the image.
cv::Size reduced(cv::Size whole, cv::Size enough) {
  if (enough.empty()) return whole;
  for (const int divisor : {8, 4, 2}) {
    const cv::Size part(whole.width / divisor, whole.height / divisor);
    if (part * divisor == whole && part.width >= enough.width && part.height >= enough.height)
      return part;
  }
  return whole;
}

/// Returns the orientation that gives an image of size `own` its annotated size. Throws DataError
/// if not annotated.
int needed_turn(cv::Size own, std::optional<cv::Size> annotated, int orientation,
                const std::string& file) {
  if (!annotated) return orientation;
  if (own == *annotated) return 1;
  if (orientation >= 5 && cv::Size(own.height, own.width) == *annotated) return orientation;
  throw WrongSize(file, fmt::format("is {} x {} pixels, but annotated as {} x {}", own.width,
                                    own.height, annotated->width, annotated->height));
}

int orientation_of(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8") ? exif_orientation(bytes) : 1;
}

cv::Mat decode(std::string_view bytes, const std::string& file, std::optional<cv::Size> annotated,
               bool strict, cv::Size enough, std::int64_t max_pixels) {
  const int orientation = orientation_of(bytes);
  // Before pixels are allocated, since a wrong header must not cost gigabytes.
  if (const auto jpeg = read_jpeg_head(bytes, file, strict, max_pixels)) {
    const int turn = needed_turn(jpeg->size, annotated, orientation, file);
    if (turn >= 5) std::swap(enough.width, enough.height);
    const auto size = jpeg->cmyk ? jpeg->size : reduced(jpeg->size, enough);
    return upright(decode_turbo(bytes, file, *jpeg, size, strict), turn);
  }
  if (const auto head = read_image_head(bytes)) {
    check_image_head(*head, bytes.size(), file, max_pixels);
    const cv::Size size(static_cast<int>(head->width), static_cast<int>(head->height));
    if (head->pixels_per_byte > 0)
      needed_turn(size, annotated, orientation, file);  // TIFFs may be rotated
  }
  int turn = 1;
  const auto image = decode_other(bytes, file, max_pixels, [&](cv::Size size) {
    turn = needed_turn(size, annotated, orientation, file);
  });
  return upright(image, turn);
}

[[noreturn]] void throw_no_memory(const std::string& file) {
  throw DataError(file, "not enough memory to decode it");
}

}  // namespace

cv::Mat upright(const cv::Mat& image, int orientation) {
  cv::Mat result = image, flipped;
  if (orientation >= 5) cv::transpose(image, result = cv::Mat());
  constexpr int kLeftToRight = 1, kBothWays = -1, kTopToBottom = 0;
  constexpr int kFlips[] = {kLeftToRight, kBothWays, kTopToBottom};  // for 2, 3, 4 and for 6, 7, 8
  const int flip = (orientation - 1) % 4;
  if (flip == 0) return result;
  cv::flip(result, flipped, kFlips[flip - 1]);
  return flipped;
}

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && is_image_name(entry.path().filename().native()))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string read_image_file(const std::string& file) {
  Event event(EventKind::file, "read", file);
  try {
    auto bytes = read_file(file, {.max_bytes = kMostBytes, .pipes = Pipes::awaited});
    event.set_bytes(std::ssize(bytes));
    return bytes;
  } catch (const Error& problem) {
    throw DataError(problem.what());  // one missing file is a fault of that sample only
  } catch (const std::bad_alloc&) {
    throw_no_memory(file);
  }
}

void check_image_bytes(std::uint64_t bytes, const std::string& file) {
  if (bytes > kMostBytes)
    throw DataError(
        file, fmt::format("has {} bytes; the maximum for an image file is {}", bytes, kMostBytes));
}

cv::Mat decode_rgb(std::string_view bytes, const std::string& file,
                   std::optional<cv::Size> annotated, bool strict, cv::Size enough,
                   std::int64_t max_pixels) {
  check_image_bytes(bytes.size(), file);
  try {
    return decode(bytes, file, annotated, strict, enough, max_pixels);
  } catch (const std::bad_alloc&) {
    throw_no_memory(file);
  } catch (const cv::Exception& problem) {
    if (problem.code == cv::Error::StsNoMem) throw_no_memory(file);
    throw;
  }
}

std::optional<cv::Size> upright_size(std::string_view bytes, const std::string& file) {
  if (!bytes.starts_with("\xFF\xD8")) return {};
  check_image_bytes(bytes.size(), file);
  const auto jpeg = read_jpeg_head(bytes, file, /*strict=*/false, kMaxPixels);
  if (!jpeg) return decode_rgb(bytes, file, {}, /*strict=*/false).size();
  const auto [width, height] = jpeg->size;
  return orientation_of(bytes) >= 5 ? cv::Size(height, width) : cv::Size(width, height);
}

std::optional<int> check_head(std::string_view bytes, const std::string& file, cv::Size annotated,
                              std::int64_t max_pixels) {
  const auto jpeg = read_jpeg_head(bytes, file, /*strict=*/true, max_pixels);
  if (!jpeg) return {};
  return needed_turn(jpeg->size, annotated, orientation_of(bytes), file);
}

}  // namespace millrace
