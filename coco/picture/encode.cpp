#include "millrace/coco/picture/encode.h"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include <memory>
#include <stdexcept>

#include "millrace/base/errors.h"

namespace millrace::coco {
namespace {

void check_picture(const cv::Mat& rgb) {
  if (rgb.empty() || rgb.type() != CV_8UC3)
    throw std::invalid_argument("only non-empty 8-bit RGB pictures can be encoded");
}

}  // namespace

std::string encode_jpeg(const cv::Mat& rgb, int quality) {
  check_picture(rgb);
  const std::unique_ptr<void, int (*)(tjhandle)> encoder(tjInitCompress(), tjDestroy);
  if (!encoder) throw Error(fmt::format("cannot initialize TurboJPEG: {}", tjGetErrorStr()));
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int status =
      tjCompress2(encoder.get(), rgb.data, rgb.cols, static_cast<int>(rgb.step), rgb.rows, TJPF_RGB,
                  &bytes, &size, TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  if (status != 0)
    throw Error(fmt::format("cannot encode a picture of {} x {} pixels as JPEG: {}", rgb.cols,
                            rgb.rows, tjGetErrorStr2(encoder.get())));
  return {reinterpret_cast<const char*>(bytes), size};
}

std::string encode_png(const cv::Mat& rgb) {
  check_picture(rgb);
  png_image head = {};
  head.version = PNG_IMAGE_VERSION;
  head.width = static_cast<png_uint_32>(rgb.cols);
  head.height = static_cast<png_uint_32>(rgb.rows);
  head.format = PNG_FORMAT_RGB;
  head.flags = PNG_IMAGE_FLAG_FAST;
  const auto stride = static_cast<png_int_32>(rgb.step);
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(head), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&head, bytes.data(), &size, 0, rgb.data, stride, nullptr) == 0)
    throw Error(fmt::format("cannot encode a picture of {} x {} pixels as PNG: {}", rgb.cols,
                            rgb.rows, head.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace millrace::coco
