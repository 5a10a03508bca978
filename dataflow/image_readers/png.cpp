#include <vector>

#include "millrace/dataflow/image_readers/png_file.h"

namespace millrace {

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
