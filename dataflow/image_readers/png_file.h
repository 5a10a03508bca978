// Decodes PNG files with libpng, whose errors become exceptions.
#pragma once

#include <png.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "millrace/dataflow/image_readers/readers.h"

namespace millrace {

/// The bytes of a PNG file and libpng's state during decoding.
struct PngFile {
  explicit PngFile(std::string_view file) : bytes(file) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, [](png_structp, auto*) {});
    info = png ? png_create_info_struct(png) : nullptr;
    if (!info) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png, this, [](png_structp from, png_bytep to, std::size_t size) {
      auto& rest = static_cast<PngFile*>(png_get_io_ptr(from))->bytes;
      if (size > rest.size()) png_error(from, "the file is truncated");
      std::memcpy(to, rest.data(), size);
      rest.remove_prefix(size);
    });
  }
  ~PngFile() { png_destroy_read_struct(&png, &info, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  [[noreturn]] static void fail(png_structp png, png_const_charp why) {
    auto& self = *static_cast<PngFile*>(png_get_error_ptr(png));
    std::strncpy(self.why, why, sizeof self.why - 1);
    std::longjmp(self.place, 1);
  }

  /// Calls `work`, which may use only objects without a destructor; throws the error that libpng
  /// reports in it.
  template <class Exception = std::runtime_error, class Work>
  void run(const Work& work) {
    if (reaches_its_end(place, work)) return;
    if (std::strstr(why, "ut of memory")) throw std::bad_alloc();
    throw Exception(std::string("broken PNG: ") + why);
  }

  std::string_view bytes;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf place;
  char why[128] = {};
};

}  // namespace millrace
