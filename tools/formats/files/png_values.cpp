#include "millrace/tools/formats/files/png_values.h"

#include <new>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/image/image_head.h"
#include "millrace/dataflow/image_readers/png_file.h"

namespace millrace::formats {

PngValues parse_png_values(std::string_view bytes) {
  const auto head = read_image_head(bytes);
  if (!bytes.starts_with("\x89PNG") || !head) throw Error("not a PNG file");
  check_image_head(*head, bytes.size(), "the PNG");
  PngFile file(bytes);
  auto* png = file.png;
  auto* info = file.info;
  file.run<Error>([&] {
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
    throw Error("broken PNG: length of rows differs from that in the header");
  std::vector<std::uint8_t> pixels(row_bytes * picture.height);
  std::vector<png_bytep> rows(picture.height);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * row_bytes;
  file.run<Error>([&] {
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
