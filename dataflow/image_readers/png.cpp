#include <png.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/dataflow/image_readers/readers.h"

namespace millrace {
namespace {

/// A file during decoding.
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

  /// Runs `work`; throws the error that libpng reports in it.
  template <class Work>
  void run(const Work& work) {
    if (reaches_its_end(place, work)) return;
    if (std::strstr(why, "ut of memory")) throw std::bad_alloc();
    throw std::runtime_error(std::string("broken PNG: ") + why);
  }

  std::string_view bytes;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf place;
  char why[128] = {};
};

}  // namespace

void read_png(std::string_view bytes, const PictureRoom& room) {
  PngFile file(bytes);
  auto* png = file.png;
  auto* info = file.info;
  file.run([&] {
    png_read_info(png, info);
    const auto colour = png_get_color_type(png, info);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if ((colour & PNG_COLOR_MASK_COLOR) == 0) {
      png_set_expand_gray_1_2_4_to_8(png);
      png_set_gray_to_rgb(png);
    }
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
  });
  const auto width = png_get_image_width(png, info), height = png_get_image_height(png, info);
  if (png_get_rowbytes(png, info) != std::size_t{width} * 3)
    throw std::runtime_error("broken PNG: not three channels after conversion");
  auto* pixels = room(static_cast<int>(width), static_cast<int>(height));
  std::vector<png_bytep> rows(height);
  for (std::size_t y = 0; y < height; ++y) rows[y] = pixels + y * width * 3;
  file.run([&] {
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
  });
}

}  // namespace millrace
