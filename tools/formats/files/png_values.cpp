#include "millrace/tools/formats/files/png_values.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace::formats {
namespace {

/// Error handler of libpng, whose functions return through longjmp to `place` after setting `why`.
struct PngFault {
  std::jmp_buf place;
  char why[128] = {};

  [[noreturn]] static void raise(png_structp png, png_const_charp why) {
    auto& self = *static_cast<PngFault*>(png_get_error_ptr(png));
    std::strncpy(self.why, why, sizeof self.why - 1);
    std::longjmp(self.place, 1);
  }
  static void ignore(png_structp, png_const_charp) {}

  /// Calls `work`, in which no object with a destructor may exist when libpng jumps out.
  template <class Work>
  void run(const Work& work) {
    if (setjmp(place) == 0)
      work();
    else
      throw Error(std::string("damaged PNG: ") + why);
  }
};

struct PngReader {
  explicit PngReader(std::string_view file) : bytes(file) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &fault, PngFault::raise, PngFault::ignore);
    info = png ? png_create_info_struct(png) : nullptr;
    if (!info) {
      png_destroy_read_struct(&png, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png, this, [](png_structp from, png_bytep to, std::size_t size) {
      auto& rest = static_cast<PngReader*>(png_get_io_ptr(from))->bytes;
      if (size > rest.size()) png_error(from, "the file is truncated");
      std::memcpy(to, rest.data(), size);
      rest.remove_prefix(size);
    });
  }
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }

  std::string_view bytes;
  PngFault fault;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

}  // namespace

PngValues parse_png_values(std::string_view bytes) {
  const auto head = read_image_head(bytes);
  if (!bytes.starts_with("\x89PNG") || !head) throw Error("not a PNG file");
  check_image_head(*head, bytes.size(), "the PNG");
  PngReader reader(bytes);
  auto* png = reader.png;
  auto* info = reader.info;
  reader.fault.run([&] {
    png_read_info(png, info);
    png_set_packing(png);  // unpacks values of 1, 2 and 4 bits without scaling
    png_set_strip_alpha(png);
    if ((png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0 &&
        png_get_color_type(png, info) != PNG_COLOR_TYPE_PALETTE)
      png_set_strip_16(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
  });
  PngValues picture{png_get_image_width(png, info), png_get_image_height(png, info)};
  const std::size_t channels = png_get_channels(png, info), row_bytes = png_get_rowbytes(png, info);
  const bool is_wide = png_get_bit_depth(png, info) == 16;
  picture.coloured = channels == 3;
  if (row_bytes != std::size_t{picture.width} * channels * (is_wide ? 2 : 1) ||
      (channels != 1 && channels != 3))
    throw Error("damaged PNG: length of rows differs from that in the header");
  std::vector<std::uint8_t> pixels(row_bytes * picture.height);
  std::vector<png_bytep> rows(picture.height);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * row_bytes;
  reader.fault.run([&] {
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
  });
  picture.values.resize(std::size_t{picture.width} * picture.height);
  const auto* from = pixels.data();
  for (auto& value : picture.values) {
    value = from[0];
    if (is_wide) value = value << 8 | from[1];
    if (channels == 3) value = value << 16 | std::uint32_t{from[1]} << 8 | from[2];
    from += channels * (is_wide ? 2 : 1);
  }
  return picture;
}

PngValues read_png_values(const std::filesystem::path& file) {
  const auto bytes = read_file(file, {.max_bytes = INT32_MAX});
  try {
    return parse_png_values(bytes);
  } catch (const Error& problem) {
    throw DataError(file.string(), problem.what());
  } catch (const std::bad_alloc&) {
    throw DataError(file.string(), "not enough memory to read it");
  }
}

}  // namespace millrace::formats
