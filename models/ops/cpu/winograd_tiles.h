// Winograd's transforms F(4x4, 3x3) of single tiles (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016), for the points 0, +-3/4, +-3/2 and infinity, whose errors
// are half of those of the paper's 0, +-1, +-2. `Value` is float or at::BFloat16, the type of
// pixels; sums are float. Numbers of channels are multiples of 16.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace {

constexpr std::int64_t kTileSide = 4;                        // side of a tile's outputs
constexpr std::int64_t kTileInputs = kTileSide + 2;          // side of their inputs
constexpr std::int64_t kPlaces = kTileInputs * kTileInputs;  // places of a transformed tile

/// Addresses of the channels of an N x N block's pixels, row by row.
template <std::size_t N, class Value = float>
using Block = std::array<const Value*, N * N>;

/// A row of each place's matrix, in panels: channel c of place i is at at + i * place + c / kPanel
/// * panel + c % kPanel.
template <class Float>
struct PlacesAt {
  Float* at;
  std::int64_t place, panel;
};
using Places = PlacesAt<float>;
using ConstPlaces = PlacesAt<const float>;

/// Computes Bt d B of a tile's inputs.
template <class Value>
void transform_input(const Block<6, Value>& d, std::int64_t channels, const Places& to);

/// Computes G g Gt of a filter's channels.
void transform_filter(const Block<3>& g, std::int64_t channels, const Places& to);

/// The address of an output pixel, and of the pixel to add to it; nullptr = none.
template <class Value>
struct Pixel {
  Value* to = nullptr;
  const Value* add = nullptr;
};

/// Computes At m A of a tile's products, then adds the bias (nullptr = none) and the sum and
/// applies ReLU.
template <class Value>
void transform_output(const ConstPlaces& m, std::int64_t channels, const float* bias, bool relu,
                      const std::array<Pixel<Value>, 16>& pixels);

/// Computes A y At of the gradients of a tile's outputs, the transpose of transform_output.
template <class Value>
void transform_gradient(const Block<4, Value>& y, std::int64_t channels, const Places& to);

/// Computes Gt u G of the gradients of a transformed filter, the transpose of transform_filter.
void transform_filter_gradient(const ConstPlaces& u, std::int64_t channels,
                               const std::array<float*, 9>& to);

}  // namespace millrace
