#include "dataflow/mask_motion.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "coco/run_writer.h"
#include "dataflow/plane.h"

namespace millrace {
namespace {

/// Rows begin .. end-1 of a column.
struct Stretch {
  std::uint32_t begin = 0, end = 0;
};

/// The stretches inside the mask, column by column.
std::vector<std::vector<Stretch>> columns_of(const coco::Rle& mask) {
  std::vector<std::vector<Stretch>> columns(mask.width);
  std::uint64_t pixel = 0;
  bool inside = false;
  for (const auto count : mask.counts) {
    for (const auto end = pixel + count; inside && pixel < end;) {
      const auto column = pixel / mask.height;
      const auto top = column * mask.height;
      const auto last = std::min(end, top + mask.height);
      columns[column].push_back(
          {static_cast<std::uint32_t>(pixel - top), static_cast<std::uint32_t>(last - top)});
      pixel = last;
    }
    if (!inside) pixel += count;
    inside = !inside;
  }
  return columns;
}

}  // namespace

coco::Rle mirrored(const coco::Rle& mask, Direction direction) {
  auto columns = columns_of(mask);
  if (direction == Direction::horizontal) {
    std::ranges::reverse(columns);
  } else {
    for (auto& column : columns) {
      std::ranges::reverse(column);
      for (auto& rows : column) rows = {mask.height - rows.end, mask.height - rows.begin};
    }
  }
  coco::RunWriter out(mask.height, mask.width);
  std::uint32_t top = 0;
  for (const auto& column : columns) {
    for (const auto& rows : column) out.add(top + rows.begin, top + rows.end);
    top += mask.height;
  }
  return std::move(out).finish();
}

coco::Rle resized(const coco::Rle& mask, std::uint32_t width, std::uint32_t height) {
  const auto columns = columns_of(mask);
  // Pixel i of n shows pixel floor((i + 1/2) * from / n) of `from`; and pixel r is first shown at
  // the least i with (2 i + 1) * from >= 2 r n.
  const auto shown_column = [from = std::uint64_t{mask.width}, n = std::uint64_t{width}](
                                std::uint64_t i) { return (2 * i + 1) * from / (2 * n); };
  const auto first_row = [from = std::uint64_t{mask.height},
                          n = std::uint64_t{height}](std::uint64_t r) {
    return static_cast<std::uint32_t>((2 * r * n + from - 1) / (2 * from));
  };
  coco::RunWriter out(height, width);
  for (std::uint32_t i = 0; i < width; ++i)
    for (const auto& rows : columns[shown_column(i)])
      out.add(i * height + first_row(rows.begin), i * height + first_row(rows.end));
  return std::move(out).finish();
}

coco::Rle warped(const coco::Rle& mask, const cv::Matx23d& matrix, cv::Size size) {
  const auto width = static_cast<std::uint32_t>(size.width);
  const auto height = static_cast<std::uint32_t>(size.height);
  coco::RunWriter out(height, width);
  const Box from = coco::bounding_box(mask);
  if (from.area() == 0) return std::move(out).finish();

  const auto left = static_cast<int>(from.x1), top = static_cast<int>(from.y1);
  const auto columns = static_cast<int>(from.width()), rows = static_cast<int>(from.height());
  std::vector<std::uint8_t> bitmap(static_cast<std::size_t>(columns) * rows);
  coco::decode(coco::window(mask, left, top, rows, columns), bitmap.data());
  const auto back = inverse(matrix);
  const auto inside = [&](std::uint32_t x, std::uint32_t y) {
    const auto point = back * cv::Vec3d(x + 0.5, y + 0.5, 1);
    const double column = std::floor(point[0]) - left, row = std::floor(point[1]) - top;
    return column >= 0 && column < columns && row >= 0 && row < rows &&
           bitmap[static_cast<std::size_t>(row) * columns + static_cast<std::size_t>(column)] != 0;
  };

  const Box to = clipped(moved(from, matrix), size);
  const auto first_row = static_cast<std::uint32_t>(to.y1);
  const auto last_row = static_cast<std::uint32_t>(std::ceil(to.y2));
  const auto last_column = static_cast<std::uint32_t>(std::ceil(to.x2));
  for (auto x = static_cast<std::uint32_t>(to.x1); x < last_column; ++x)
    for (auto y = first_row; y < last_row; ++y)
      if (inside(x, y)) out.add(x * height + y, x * height + y + 1);
  return std::move(out).finish();
}

}  // namespace millrace
