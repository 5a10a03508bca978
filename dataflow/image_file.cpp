#include "dataflow/image_file.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <array>
#include <memory>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "dataflow/exif.h"

namespace millrace {
namespace {

struct DestroyHandle {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using UniqueDecompressor = std::unique_ptr<void, DestroyHandle>;

/// This thread's decompressor. TurboJPEG keeps `strict` (stop on warning) from one call to the next, so there
/// is one for each; and it may start the next file wrong after a broken one, so faults throw it away.
UniqueDecompressor& decompressor(bool strict) {
  static thread_local std::array<UniqueDecompressor, 2> handles;
  auto& handle = handles[strict];
  if (!handle) handle.reset(tjInitDecompress());
  if (!handle) throw Error(fmt::format("TurboJPEG does not start: {}", tjGetErrorStr()));
  return handle;
}

[[noreturn]] void throw_broken(const std::string& file, UniqueDecompressor& handle) {
  const std::string why = tjGetErrorStr2(handle.get());
  handle.reset();
  throw DataError(file, fmt::format("broken JPEG: {}", why));
}

const unsigned char* data(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// No JPEG packs more pixels into a byte: a block of 64 takes a bit at least, or so with arithmetic coding.
constexpr std::int64_t kMostPixelsPerByte = 4096;

/// What the head of a JPEG says; nothing where TurboJPEG cannot make RGB of it.
std::optional<cv::Size> turbo_size(std::string_view bytes, const std::string& file, bool strict) {
  if (!bytes.starts_with("\xFF\xD8")) return {};
  auto& handle = decompressor(strict);
  cv::Size size;
  int subsampling = 0, colours = 0;
  const int status = tjDecompressHeader3(handle.get(), data(bytes), bytes.size(), &size.width,
                                         &size.height, &subsampling, &colours);
  const bool only_warned = status != 0 && tjGetErrorCode(handle.get()) == TJERR_WARNING;
  if (only_warned && strict) throw_broken(file, handle);
  if (size.empty() || (status != 0 && !only_warned)) {
    handle.reset();
    return {};
  }
  if (size.width > kMostPixelsPerByte * static_cast<std::int64_t>(bytes.size()) / size.height)
    throw DataError(file, fmt::format("says that it is {} x {} pixels, but has only {} bytes",
                                      size.width, size.height, bytes.size()));
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) return {};
  return size;
}

cv::Mat decode_turbo(std::string_view bytes, const std::string& file, cv::Size size, bool strict) {
  auto& handle = decompressor(strict);
  cv::Mat image(size, CV_8UC3);
  const int flags = TJFLAG_ACCURATEDCT | (strict ? TJFLAG_STOPONWARNING : 0);
  const int status = tjDecompress2(handle.get(), data(bytes), bytes.size(), image.data, size.width,
                                   static_cast<int>(image.step), size.height, TJPF_RGB, flags);
  if (status != 0 && (strict || tjGetErrorCode(handle.get()) == TJERR_FATAL))
    throw_broken(file, handle);
  return image;
}

cv::Mat decode_opencv(std::string_view bytes, const std::string& file) {
  cv::Mat image;
  try {
    const cv::Mat input(1, static_cast<int>(bytes.size()), CV_8U, const_cast<char*>(bytes.data()));
    if (!input.empty())
      image = cv::imdecode(input, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
  } catch (const cv::Exception& problem) {
    throw DataError(file, problem.err);
  }
  if (image.empty())
    throw DataError(file, bytes.empty() ? "the file is empty" : "not an image that can be decoded");
  cv::cvtColor(image, image, cv::COLOR_BGR2RGB);
  return image;
}

/// The least of a JPEG's sizes that is `enough`: whole, or the half, quarter or eighth that libjpeg-turbo has fast
/// transforms for (of COCO's photos, half takes 0.9 of the time of the whole, but five to seven eighths 1.1 to 1.6).
/// Only where nothing is left over: libjpeg-turbo would round up, and what is in the picture would shift.
cv::Size reduced(cv::Size whole, cv::Size enough) {
  if (enough.empty()) return whole;
  for (const int divisor : {8, 4, 2}) {
    const cv::Size part(whole.width / divisor, whole.height / divisor);
    if (part * divisor == whole && part.width >= enough.width && part.height >= enough.height)
      return part;
  }
  return whole;
}

/// The turn that gives a picture of `own` size its annotated size. Throws DataError where none does.
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

}  // namespace

cv::Mat decode_rgb(std::string_view bytes, const std::string& file,
                   std::optional<cv::Size> annotated, bool strict, cv::Size enough) {
  const int orientation = orientation_of(bytes);
  if (const auto size = turbo_size(bytes, file, strict)) {
    // Before the pixels: a wrong head must not cost gigabytes.
    const int turn = needed_turn(*size, annotated, orientation, file);
    if (turn >= 5) std::swap(enough.width, enough.height);
    return upright(decode_turbo(bytes, file, reduced(*size, enough), strict), turn);
  }
  const auto image = decode_opencv(bytes, file);
  return upright(image, needed_turn(image.size(), annotated, orientation, file));
}

std::optional<int> check_head(std::string_view bytes, const std::string& file, cv::Size annotated) {
  const auto size = turbo_size(bytes, file, /*strict=*/true);
  if (!size) return {};
  return needed_turn(*size, annotated, orientation_of(bytes), file);
}

}  // namespace millrace
