// Winograd's transforms F(4x4, 3x3) of single tiles (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2016), for the points 0, +-3/4, +-3/2 and infinity: with these,
// errors are half of those with the paper's 0, +-1, +-2, as large as a direct sum's in float.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace {

constexpr std::int64_t kTileSide = 4;                        // outputs of a tile, each way
constexpr std::int64_t kTileInputs = kTileSide + 2;          // inputs that they depend on, each way
constexpr std::int64_t kPlaces = kTileInputs * kTileInputs;  // of a transformed tile

/// Where the channels of an N x N block's pixels lie, row by row.
template <std::size_t N>
using Block = std::array<const float*, N * N>;

/// Channels of places: those of place i, from c in whole panels, at to + i * place + c / kPanel *
/// panel.
struct Places {
  float* to;
  std::int64_t place, panel;
};
struct ConstPlaces {
  const float* from;
  std::int64_t place, panel;
};

/// Bt d B of a tile's inputs.
void transform_input(const Block<6>& d, std::int64_t channels, const Places& places);

/// G g Gt of filters.
void transform_filter(const Block<3>& g, std::int64_t channels, const Places& places);

/// Where a pixel of the output goes, and what is added to it; nullptr: nothing.
struct Pixel {
  float* to = nullptr;
  const float* add = nullptr;
};
/// At m A of a tile's products, then bias (nullptr: none), sum and ReLU.
void transform_output(const ConstPlaces& m, std::int64_t channels, const float* bias, bool relu,
                      const std::array<Pixel, 16>& pixels);

/// A y At of the gradients of a tile's outputs, the transpose of transform_output.
void transform_gradient(const Block<4>& y, std::int64_t channels, const Places& places);

/// Gt u G of the gradients of transformed filters, the transpose of transform_filter.
void transform_filter_gradient(const ConstPlaces& u, std::int64_t channels,
                               const std::array<float*, 9>& to);

}  // namespace millrace
