#include "millrace/tools/formats/files/value_masks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "millrace/coco/masks/run_writer.h"

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
