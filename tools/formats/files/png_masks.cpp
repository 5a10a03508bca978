#include "millrace/tools/formats/files/png_masks.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/masks/run_writer.h"
#include "millrace/dataflow/image/image_head.h"
#include "millrace/dataflow/image_readers/png_file.h"

namespace millrace::formats {
namespace {

/// A run of foreground pixels within one column.
struct ColumnRun {
  std::uint32_t column, begin, end;  // rows [begin, end)
};

std::vector<ColumnRun> column_runs(const coco::Rle& mask) {
  std::vector<ColumnRun> runs;
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < mask.counts.size(); ++i) {
    const auto end = at + mask.counts[i];
    while (i % 2 == 1 && at < end) {
      const auto column = at / mask.height, row = at % mask.height;
      const auto last = std::min(end - column * mask.height, std::uint64_t{mask.height});
      runs.push_back({static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(row),
                      static_cast<std::uint32_t>(last)});
      at = column * mask.height + last;
    }
    at = end;
  }
  return runs;
}

std::size_t root_of(std::vector<std::size_t>& parents, std::size_t i) {
  while (parents[i] != i) i = parents[i] = parents[parents[i]];
  return i;
}

}  // namespace

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

std::optional<std::map<std::uint32_t, coco::Rle>> masks_of_values(const PngValues& picture,
                                                                  std::size_t most) {
  std::map<std::uint32_t, coco::RunWriter> writers;
  const auto [width, height] = std::pair(picture.width, picture.height);
  for (std::uint32_t x = 0; x < width; ++x)
    for (std::uint32_t y = 0; y < height;) {
      const auto value = picture.values[std::size_t{y} * width + x];
      const auto begin = y;
      while (++y < height && picture.values[std::size_t{y} * width + x] == value) {
      }
      if (value == 0) continue;
      const auto found = writers.try_emplace(value, height, width).first;
      if (writers.size() > most) return {};
      found->second.add(x * height + begin, x * height + y);
    }
  std::map<std::uint32_t, coco::Rle> masks;
  for (auto& [value, writer] : writers) masks.emplace(value, std::move(writer).finish());
  return masks;
}

std::vector<coco::Rle> connected_parts(const coco::Rle& mask) {
  const auto runs = column_runs(mask);
  std::vector<std::size_t> parents(runs.size());
  std::iota(parents.begin(), parents.end(), std::size_t{0});
  std::size_t left = 0;  // first run of the previous column that may touch
  for (std::size_t i = 0; i < runs.size(); ++i) {
    while (left < i &&
           (runs[left].column + 1 < runs[i].column ||
            (runs[left].column + 1 == runs[i].column && runs[left].end < runs[i].begin)))
      ++left;
    for (auto j = left;
         j < i && runs[j].column + 1 == runs[i].column && runs[j].begin <= runs[i].end; ++j) {
      const auto a = root_of(parents, i), b = root_of(parents, j);
      parents[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<std::size_t, coco::RunWriter> writers;
  for (std::size_t i = 0; i < runs.size(); ++i)
    writers.try_emplace(root_of(parents, i), mask.height, mask.width)
        .first->second.add(runs[i].column * mask.height + runs[i].begin,
                           runs[i].column * mask.height + runs[i].end);
  std::vector<coco::Rle> parts;
  for (auto& [root, writer] : writers) parts.push_back(std::move(writer).finish());
  return parts;
}

}  // namespace millrace::formats
