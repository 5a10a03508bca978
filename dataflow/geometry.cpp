#include "dataflow/geometry.h"

#include <algorithm>
#include <utility>

#include "coco/run_writer.h"

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

coco::Rle mirrored(const coco::Rle& mask) {
  const auto columns = columns_of(mask);
  coco::RunWriter out(mask.height, mask.width);
  std::uint32_t top = 0;
  for (auto column = columns.rbegin(); column != columns.rend(); ++column, top += mask.height)
    for (const auto& rows : *column) out.add(top + rows.begin, top + rows.end);
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

void mirror(Instances& objects, std::int32_t width) {
  const auto right = static_cast<float>(width);
  for (auto& box : objects.boxes) box = {right - box.x2, box.y1, right - box.x1, box.y2};
  for (auto& shape : objects.segmentations) {
    if (auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      for (auto& polygon : *polygons)
        for (std::size_t i = 0; i < polygon.size(); i += 2) polygon[i] = right - polygon[i];
    } else if (auto* mask = std::get_if<coco::Rle>(&shape)) {
      *mask = mirrored(*mask);
    }
  }
}

void resize(Instances& objects, std::int32_t width, std::int32_t height, float scale_x,
            float scale_y) {
  for (auto& box : objects.boxes)
    box = {box.x1 * scale_x, box.y1 * scale_y, box.x2 * scale_x, box.y2 * scale_y};
  for (auto& shape : objects.segmentations) {
    if (auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      for (auto& polygon : *polygons)
        for (std::size_t i = 0; i < polygon.size(); ++i)
          polygon[i] *= i % 2 == 0 ? scale_x : scale_y;
    } else if (auto* mask = std::get_if<coco::Rle>(&shape)) {
      *mask = resized(*mask, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height));
    }
  }
}

}  // namespace millrace
