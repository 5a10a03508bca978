#include "millrace/models/layers/winograd.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/silu.h>

#include <algorithm>
#include <array>
#include <vector>

#include "millrace/models/layers/matrix_product.h"

namespace millrace {
namespace {

constexpr std::int64_t kTiles = 128;  // of 2 x 2 outputs that are multiplied at once: they fit L2
constexpr std::int64_t kPlaces = 16;  // of a transformed tile, 4 x 4
constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

/// Where the channels of a 4 x 4 or 2 x 2 block lie, row by row.
template <std::size_t N>
using Block = std::array<const float*, N * N>;

/// G g Gt of each filter: (K, 3, 3, C) in memory to (16, K, C).
void transform_weight(const float* weight, std::int64_t out, std::int64_t in, float* result) {
  at::parallel_for(0, out, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> rows(static_cast<std::size_t>(12 * in));
    for (std::int64_t k = begin; k < end; ++k) {
      const auto* g = weight + k * 9 * in;
      for (std::int64_t x = 0; x < 3; ++x)  // columns of g become those of 4 x 3
        for (std::int64_t c = 0; c < in; ++c) {
          const float a = g[x * in + c], b = g[(3 + x) * in + c], e = g[(6 + x) * in + c];
          auto* to = rows.data() + x * in + c;
          to[0] = a;
          to[3 * in] = 0.5F * (a + b + e);
          to[6 * in] = 0.5F * (a - b + e);
          to[9 * in] = e;
        }
      for (std::int64_t y = 0; y < 4; ++y)
        for (std::int64_t c = 0; c < in; ++c) {
          const auto* from = rows.data() + 3 * y * in + c;
          const float a = from[0], b = from[in], e = from[2 * in];
          auto* to = result + (4 * y * out + k) * in + c;
          to[0] = a;
          to[out * in] = 0.5F * (a + b + e);
          to[2 * out * in] = 0.5F * (a - b + e);
          to[3 * out * in] = e;
        }
    }
  });
}

// Sixteen channels at once, in as many registers as the processor's take: sums alone, so that all
// processors give the same bytes.
constexpr std::int64_t kLanes = 16;
using Lanes __attribute__((vector_size(4 * kLanes), aligned(4), may_alias)) = float;
#if defined(__x86_64__)
#define MILLRACE_FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MILLRACE_FOR_EACH_PROCESSOR
#endif

const Lanes& lanes(const float* from) { return *reinterpret_cast<const Lanes*>(from); }
Lanes& lanes(float* to) { return *reinterpret_cast<Lanes*>(to); }

/// Bt d B of a tile's inputs, `count` channels: to 16 places `step` apart.
MILLRACE_FOR_EACH_PROCESSOR
void transform_input(const Block<4>& d, std::int64_t count, float* to, std::int64_t step) {
  for (std::int64_t c = 0; c < count; c += kLanes) {
    Lanes t[16];
    for (std::size_t x = 0; x < 4; ++x) {
      const Lanes a = lanes(d[x] + c), b = lanes(d[4 + x] + c), e = lanes(d[8 + x] + c),
                  f = lanes(d[12 + x] + c);
      t[x] = a - e;
      t[4 + x] = b + e;
      t[8 + x] = e - b;
      t[12 + x] = b - f;
    }
    for (std::int64_t y = 0; y < 4; ++y) {
      const Lanes a = t[4 * y], b = t[4 * y + 1], e = t[4 * y + 2], f = t[4 * y + 3];
      auto* place = to + 4 * y * step + c;
      lanes(place) = a - e;
      lanes(place + step) = b + e;
      lanes(place + 2 * step) = e - b;
      lanes(place + 3 * step) = b - f;
    }
  }
}

/// Where a pixel of the output goes, and what is added to it; nullptr: nothing.
struct Pixel {
  float* to = nullptr;
  const float* add = nullptr;
};

/// At m A of a tile's products, the bias, the sum and the ReLU: to 2 x 2 pixels of `count`
/// channels, of which those beyond the edge are left out.
MILLRACE_FOR_EACH_PROCESSOR
void transform_output(const Block<4>& m, std::int64_t count, const float* bias, bool relu,
                      const std::array<Pixel, 4>& pixels) {
  for (std::int64_t c = 0; c < count; c += kLanes) {
    Lanes t[8];
    for (std::size_t x = 0; x < 4; ++x) {
      const Lanes a = lanes(m[x] + c), b = lanes(m[4 + x] + c), e = lanes(m[8 + x] + c),
                  f = lanes(m[12 + x] + c);
      t[x] = a + b + e;
      t[4 + x] = b - e - f;
    }
    const Lanes values[4] = {t[0] + t[1] + t[2], t[1] - t[2] - t[3], t[4] + t[5] + t[6],
                             t[5] - t[6] - t[7]};
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& [to, add] = pixels[i];
      if (!to) continue;
      Lanes y = values[i];
      if (bias) y += lanes(bias + c);
      if (add) y += lanes(add + c);
      lanes(to + c) = relu ? (y > 0 ? y : Lanes{}) : y;
    }
  }
}

}  // namespace

bool winograd_fits(const at::Tensor& x, const at::Tensor& weight) {
  constexpr std::int64_t kLeastChannels = 64, kLeastPixels = 196;
  return x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat &&
         weight.size(2) == 3 && weight.size(3) == 3 && weight.size(0) >= kLeastChannels &&
         weight.size(1) >= kLeastChannels && weight.size(0) % kLanes == 0 &&
         weight.size(1) % kLanes == 0 && x.size(2) * x.size(3) >= kLeastPixels && x.size(0) > 0;
}

at::Tensor winograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const After& after) {
  const auto images = x.size(0), in = x.size(1), height = x.size(2), width = x.size(3),
             out = weight.size(0);
  const auto pixels = x.contiguous(kChannelsLast), filters = weight.contiguous(kChannelsLast);
  const auto add = after.add.defined() ? after.add.contiguous(kChannelsLast) : at::Tensor();
  const auto transformed = at::empty({kPlaces, out, in}, x.options());
  transform_weight(filters.const_data_ptr<float>(), out, in, transformed.mutable_data_ptr<float>());
  const auto factors = transformed.unbind();
  auto result = at::empty({images, out, height, width}, x.options(), kChannelsLast);

  const auto* from = pixels.const_data_ptr<float>();
  const auto* const shift = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  const auto* const more = add.defined() ? add.const_data_ptr<float>() : nullptr;
  auto* const to = result.mutable_data_ptr<float>();
  const bool relu = after.activation == Activation::relu;
  const auto rows = (height + 1) / 2, columns = (width + 1) / 2, tiles = images * rows * columns;
  at::parallel_for(0, (tiles + kTiles - 1) / kTiles, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::vector<float> zeros(static_cast<std::size_t>(in));
    const auto inputs = at::empty({kPlaces, kTiles, in}, x.options());
    const auto places = inputs.unbind();
    std::array<at::Tensor, kPlaces> products;
    auto* const input = inputs.mutable_data_ptr<float>();
    std::fill_n(input, inputs.numel(), 0.0F);
    for (std::int64_t block = begin; block < end; ++block) {
      const auto first = block * kTiles, count = std::min(kTiles, tiles - first);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto column = (first + i) % columns, row = (first + i) / columns % rows,
                   image = (first + i) / columns / rows;
        Block<4> tile;
        for (std::int64_t dy = 0; dy < 4; ++dy)
          for (std::int64_t dx = 0; dx < 4; ++dx) {
            const auto y = 2 * row + dy - 1, x_at = 2 * column + dx - 1;
            const bool inside = y >= 0 && y < height && x_at >= 0 && x_at < width;
            tile[static_cast<std::size_t>(4 * dy + dx)] =
                inside ? from + ((image * height + y) * width + x_at) * in : zeros.data();
          }
        transform_input(tile, in, input + i * in, kTiles * in);
      }
      Block<4> product;
      for (std::size_t place = 0; place < kPlaces; ++place) {
        products[place] = times_transposed(places[place], factors[place]);
        product[place] = products[place].const_data_ptr<float>();
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const auto column = (first + i) % columns, row = (first + i) / columns % rows,
                   image = (first + i) / columns / rows;
        std::array<Pixel, 4> pixel;
        for (std::int64_t dy = 0; dy < 2; ++dy)
          for (std::int64_t dx = 0; dx < 2; ++dx) {
            const auto y = 2 * row + dy, x_at = 2 * column + dx;
            if (y >= height || x_at >= width) continue;
            const auto place = ((image * height + y) * width + x_at) * out;
            pixel[static_cast<std::size_t>(2 * dy + dx)] = {to + place,
                                                            more ? more + place : nullptr};
          }
        transform_output(product, out, shift, relu, pixel);
        for (auto& of_place : product) of_place += out;
      }
    }
  });
  if (after.activation == Activation::silu) at::silu_(result);
  return result;
}

}  // namespace millrace
