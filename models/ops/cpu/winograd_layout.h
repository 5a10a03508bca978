// The memory layout of Winograd's convolutions: matrices in panels, and tiles of maps.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "millrace/models/ops/cpu/panel_product.h"
#include "millrace/models/ops/cpu/touched_pixels.h"
#include "millrace/models/ops/cpu/winograd_tiles.h"

namespace millrace::winograd_layout {

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr std::int64_t padded(std::int64_t channels) {
  return divide_up(channels, kPanel) * kPanel;
}

/// One matrix of floats for each place of a transformed tile, in panels; columns are padded.
class Matrices {
 public:
  /// `clear` zeroes the memory, for padding that is read but never written.
  Matrices(std::int64_t rows, std::int64_t columns, bool clear)
      : rows_(rows),
        // One line more than the matrix has, since the 36 places of a row are written together, and
        // lines at multiples of a page share a set of the cache.
        step_(rows * padded(columns) + kPanel),
        numbers_(clear ? at::zeros({kPlaces * step_}, at::kFloat)
                       : at::empty({kPlaces * step_}, at::kFloat)),
        data_(numbers_.mutable_data_ptr<float>()) {}

  /// Returns the address of an element within its panel.
  float* at(std::int64_t place, std::int64_t row, std::int64_t column) const {
    return data_ + place * step_ + column * rows_ + row * kPanel;
  }
  Places row(std::int64_t row, std::int64_t column = 0) const {
    return {at(0, row, column), step_, panel()};
  }
  ConstPlaces const_row(std::int64_t row) const { return {at(0, row, 0), step_, panel()}; }
  std::int64_t panel() const { return rows_ * kPanel; }  // floats of a panel

 private:
  std::int64_t rows_, step_;
  at::Tensor numbers_;
  float* data_;
};

/// The tiles of a batch of maps, numbered image by image and row by row.
struct Tiles {
  explicit Tiles(const at::Tensor& map)
      : height(map.size(2)),
        width(map.size(3)),
        rows(divide_up(height, kTileSide)),
        columns(divide_up(width, kTileSide)),
        count(map.size(0) * of_image()) {}

  std::int64_t of_image() const { return rows * columns; }

  /// Returns the pixels of the kSide x kSide block that begins `before` pixels above and left of a
  /// tile, as indices of pixels of the batch; -1 = outside the image.
  template <std::size_t kSide>
  std::array<std::int64_t, kSide * kSide> block(std::int64_t tile, std::int64_t before) const {
    const auto column = tile % columns, row = tile / columns % rows, image = tile / columns / rows;
    std::array<std::int64_t, kSide * kSide> pixels;
    std::size_t i = 0;
    for (std::int64_t dy = 0; dy < std::int64_t{kSide}; ++dy) {
      const auto y = kTileSide * row + dy - before;
      for (std::int64_t dx = 0; dx < std::int64_t{kSide}; ++dx, ++i) {
        const auto x = kTileSide * column + dx - before;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        pixels[i] = inside ? (image * height + y) * width + x : -1;
      }
    }
    return pixels;
  }

  std::int64_t height, width, rows, columns, count;
};

inline std::vector<Tiles> tiles_of(at::TensorList maps) { return {maps.begin(), maps.end()}; }

/// A tile of one of several batches of maps.
struct Tile {
  std::size_t map;
  std::int64_t number;
};

/// Returns the tiles for which is_wanted(map, number) is true, map by map.
template <class IsWanted>
std::vector<Tile> tiles_where(const std::vector<Tiles>& tiles, const IsWanted& is_wanted) {
  std::vector<Tile> wanted;
  for (std::size_t map = 0; map < tiles.size(); ++map)
    for (std::int64_t number = 0; number < tiles[map].count; ++number)
      if (is_wanted(map, number)) wanted.push_back({map, number});
  return wanted;
}

inline std::int64_t count_of(const std::vector<Tiles>& tiles) {
  std::int64_t count = 0;
  for (const auto& of_map : tiles) count += of_map.count;
  return count;
}

inline std::vector<Tile> all_tiles(const std::vector<Tiles>& tiles) {
  return tiles_where(tiles, [](std::size_t, std::int64_t) { return true; });
}

/// Returns the tiles with a touched pixel in their block<kSide>(number, before).
template <std::size_t kSide>
std::vector<Tile> touched_tiles(const std::vector<Tiles>& tiles,
                                const std::vector<TouchedPixels>& touched, std::int64_t before) {
  return tiles_where(tiles, [&](std::size_t map, std::int64_t number) {
    const auto& [is, count] = touched[map];
    return count == std::ssize(is) ||
           std::ranges::any_of(tiles[map].block<kSide>(number, before), [&](std::int64_t pixel) {
             return pixel >= 0 && is[static_cast<std::size_t>(pixel)];
           });
  });
}

/// Returns the addresses of the channels of `pixels`; `zeros` for pixels outside.
template <std::size_t kSide, class Value>
Block<kSide, Value> channels_of(const std::array<std::int64_t, kSide * kSide>& pixels,
                                const Value* from, std::int64_t channels, const Value* zeros) {
  Block<kSide, Value> block;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    block[i] = pixels[i] < 0 ? zeros : from + pixels[i] * channels;
  return block;
}

}  // namespace millrace::winograd_layout
