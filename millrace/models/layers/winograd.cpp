#include "millrace/models/layers/winograd.h"

#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/silu.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "millrace/models/layers/panel_product.h"
#include "millrace/models/layers/winograd_tiles.h"
#include "millrace/models/ops/dispatched.h"

namespace millrace {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Floats from one place's matrix to the next: a line more than it has, since the 36 places of a
/// tile are written together, and lines at multiples of a page share a set of the cache.
constexpr std::int64_t place_step(std::int64_t rows, std::int64_t columns) {
  return rows * columns + kPanel;
}

at::Tensor for_places(std::int64_t rows, std::int64_t columns, const at::Tensor& like) {
  return at::empty({kPlaces * place_step(rows, columns)}, like.options());
}

/// The tiles of a batch of maps, numbered image by image and row by row.
struct Tiles {
  explicit Tiles(const at::Tensor& map)
      : height(map.size(2)),
        width(map.size(3)),
        rows(divide_up(height, kTileSide)),
        columns(divide_up(width, kTileSide)),
        count(map.size(0) * of_image()) {}

  std::int64_t of_image() const { return rows * columns; }

  /// Pixels of the kSide x kSide block that begins `before` pixels above and left of a tile, as
  /// numbers of pixels of the batch; -1: outside of the image.
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

/// The channels of pixels, zeros for those outside.
template <std::size_t kSide>
Block<kSide> channels_of(const std::array<std::int64_t, kSide * kSide>& pixels, const float* from,
                         std::int64_t channels, const float* zeros) {
  Block<kSide> block;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    block[i] = pixels[i] < 0 ? zeros : from + pixels[i] * channels;
  return block;
}

/// Filters (K, 3, 3, C) in memory as 36 matrices (C, K) in panels.
at::Tensor transformed(const at::Tensor& weight) {
  constexpr std::int64_t kChannels = 16;  // transposed at once
  const auto out = weight.size(0), in = weight.size(1);
  auto result = for_places(in, out, weight);
  const auto* const from = weight.const_data_ptr<float>();
  auto* const to = result.mutable_data_ptr<float>();
  const auto blocks = in / kChannels;
  at::parallel_for(0, out / kPanel * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    std::array<float, kChannels * 9 * kPanel> turned;  // (kChannels, 9, kPanel)
    for (auto task = begin; task < end; ++task) {
      const auto first_k = task / blocks * kPanel, first_c = task % blocks * kChannels;
      for (std::int64_t k = 0; k < kPanel; ++k)
        for (std::int64_t i = 0; i < 9; ++i)
          for (std::int64_t c = 0; c < kChannels; ++c)
            turned[static_cast<std::size_t>((c * 9 + i) * kPanel + k)] =
                from[((first_k + k) * 9 + i) * in + first_c + c];
      for (std::int64_t c = 0; c < kChannels; ++c) {
        Block<3> g;
        for (std::size_t i = 0; i < 9; ++i)
          g[i] = turned.data() + (9 * static_cast<std::size_t>(c) + i) * kPanel;
        transform_filter(g, kPanel,
                         {to + first_k * in + (first_c + c) * kPanel, place_step(in, out), 0});
      }
    }
  });
  return result;
}

/// The same filters turned by 180 degrees, as 36 matrices (K, C): for gradients of inputs.
at::Tensor transformed_backward(const at::Tensor& weight) {
  const auto out = weight.size(0), in = weight.size(1);
  auto result = for_places(out, in, weight);
  const auto* const from = weight.const_data_ptr<float>();
  auto* const to = result.mutable_data_ptr<float>();
  at::parallel_for(0, out, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) {
      Block<3> g;
      for (std::size_t i = 0; i < 9; ++i)
        g[8 - i] = from + (9 * k + static_cast<std::int64_t>(i)) * in;
      transform_filter(g, in, {to + k * kPanel, place_step(out, in), out * kPanel});
    }
  });
  return result;
}

/// The convolution of x, channels last, with transformed filters.
at::Tensor convolve_tiles(const at::Tensor& x, const at::Tensor& filters, std::int64_t out,
                          const float* bias, const float* add, bool relu) {
  constexpr std::int64_t kMostTiles = 112;  // whose products fit L2
  const Tiles tiles(x);
  const auto in = x.size(1);
  auto result = at::empty({x.size(0), out, tiles.height, tiles.width}, x.options(), kChannelsLast);
  const auto* const from = x.const_data_ptr<float>();
  const auto* const factors = filters.const_data_ptr<float>();
  auto* const to = result.mutable_data_ptr<float>();
  // As many blocks for each thread, of about the same size.
  const std::int64_t threads = at::get_num_threads();
  const auto rounds = divide_up(tiles.count, threads * kMostTiles),
             block = divide_up(tiles.count, threads * rounds),
             blocks = divide_up(tiles.count, block);
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::vector<float> zeros(static_cast<std::size_t>(in));
    const auto inputs = for_places(block, in, x), products = for_places(block, out, x);
    auto* const input = inputs.mutable_data_ptr<float>();
    auto* const product = products.mutable_data_ptr<float>();
    for (auto number = begin; number < end; ++number) {
      const auto first = number * block, count = std::min(block, tiles.count - first);
      for (std::int64_t i = 0; i < count; ++i)
        transform_input(channels_of<6>(tiles.block<6>(first + i, 1), from, in, zeros.data()), in,
                        {input + i * kPanel, place_step(block, in), block * kPanel});
      for (std::int64_t place = 0; place < kPlaces; ++place)
        for (std::int64_t k = 0; k < out; k += kPanel)
          multiply_panel(count, in, input + place * place_step(block, in), block * kPanel,
                         factors + place * place_step(in, out) + k * in,
                         product + place * place_step(block, out) + k * block);
      for (std::int64_t i = 0; i < count; ++i) {
        std::array<Pixel, 16> pixels;
        const auto places = tiles.block<4>(first + i, 0);
        for (std::size_t j = 0; j < pixels.size(); ++j)
          if (places[j] >= 0)
            pixels[j] = {to + places[j] * out, add ? add + places[j] * out : nullptr};
        transform_output({product + i * kPanel, place_step(block, out), block * kPanel}, out, bias,
                         relu, pixels);
      }
    }
  });
  return result;
}

/// The gradient of the weight (K, C, 3, 3), all channels last.
at::Tensor weight_gradient(const at::Tensor& gradient, const at::Tensor& x) {
  constexpr std::int64_t kMostTiles = 256;  // whose transforms lie in the last cache
  const Tiles tiles(x);
  const auto in = x.size(1), out = gradient.size(1);
  const auto* const from = x.const_data_ptr<float>();
  const auto* const slopes = gradient.const_data_ptr<float>();
  const auto block = std::min(kMostTiles, tiles.count);
  const auto inputs = for_places(block, in, x), outputs = for_places(block, out, x),
             sums = for_places(out, in, x).zero_();
  auto* const input = inputs.mutable_data_ptr<float>();
  auto* const output = outputs.mutable_data_ptr<float>();
  auto* const sum = sums.mutable_data_ptr<float>();
  const std::vector<float> zeros(static_cast<std::size_t>(std::max(in, out)));
  for (std::int64_t first = 0; first < tiles.count; first += block) {
    const auto count = std::min(block, tiles.count - first);
    at::parallel_for(0, count, 8, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        transform_input(channels_of<6>(tiles.block<6>(first + i, 1), from, in, zeros.data()), in,
                        {input + i * kPanel, place_step(block, in), block * kPanel});
        transform_gradient(channels_of<4>(tiles.block<4>(first + i, 0), slopes, out, zeros.data()),
                           out, {output + i * kPanel, place_step(block, out), block * kPanel});
      }
    });
    const auto panels = out / kPanel;
    at::parallel_for(0, kPlaces * panels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto task = begin; task < end; ++task) {
        const auto place = task / panels, k = task % panels * kPanel;
        for (std::int64_t c = 0; c < in; c += kPanel)
          add_transposed_panel(count, output + place * place_step(block, out) + k * block,
                               input + place * place_step(block, in) + c * block,
                               sum + place * place_step(out, in) + c * out + k * kPanel);
      }
    });
  }
  auto result = at::empty({out, in, 3, 3}, x.options(), kChannelsLast);
  auto* const to = result.mutable_data_ptr<float>();
  at::parallel_for(0, out, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) {
      std::array<float*, 9> places;
      for (std::size_t i = 0; i < 9; ++i)
        places[i] = to + (9 * k + static_cast<std::int64_t>(i)) * in;
      transform_filter_gradient({sum + k * kPanel, place_step(out, in), out * kPanel}, in, places);
    }
  });
  return result;
}

const float* data_of(const OptionalTensor& tensor) {
  return tensor ? tensor->const_data_ptr<float>() : nullptr;
}

at::Tensor on_cpu(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                  const OptionalTensor& add, bool relu) {
  return convolve_tiles(x, transformed(weight), weight.size(0), data_of(bias), data_of(add), relu);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_on_cpu(const at::Tensor& gradient,
                                                               const at::Tensor& x,
                                                               const at::Tensor& weight,
                                                               std::array<bool, 3> wanted) {
  at::Tensor dx, dw, db;
  if (wanted[0])
    dx = convolve_tiles(gradient, transformed_backward(weight), weight.size(1), nullptr, nullptr,
                        false);
  if (wanted[1]) dw = weight_gradient(gradient, x);
  if (wanted[2]) db = gradient.sum({0, 2, 3});
  return {dx, dw, db};
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) {
  library.impl("winograd", on_cpu);
  library.impl("winograd_backward", backward_on_cpu);
}

/// Whether the processor multiplies matrices of bf16 (AMX).
bool has_bf16_matrices() {
  const auto capabilities = at::cpu::get_cpu_capabilities();
  const auto found = capabilities.find("amx_bf16");
  return found != capabilities.end() && found->second.toBool();
}

/// bf16 is multiplied as float, which is faster unless the processor multiplies its matrices.
bool computes(at::ScalarType type) {
  static const bool faster = !has_bf16_matrices();
  return type == at::kFloat || (type == at::kBFloat16 && faster);
}

at::Tensor in_float(const at::Tensor& x) { return x.to(at::kFloat).contiguous(kChannelsLast); }

}  // namespace

bool winograd_fits(const at::Tensor& x, const at::Tensor& weight) {
  if (!x.is_cpu() || !computes(x.scalar_type()) || weight.scalar_type() != x.scalar_type() ||
      weight.size(2) != 3 || weight.size(3) != 3 || x.numel() == 0 || !multiplies_panels())
    return false;
  const auto out = weight.size(0), in = weight.size(1), pixels = x.size(2) * x.size(3);
  if (out % kPanel != 0 || in % kPanel != 0) return false;
  // What transforming the weight costs, and tiles that lie half outside of the map.
  const auto in_tiles = Tiles(x).of_image() * kTileSide * kTileSide;
  return pixels >= 128 && 2048 * pixels >= in * out && in_tiles <= 2 * pixels;
}

at::Tensor winograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const After& after) {
  static const auto op = dispatched<decltype(on_cpu)>("millrace::winograd");
  const auto shift = bias.defined() ? OptionalTensor(bias.to(at::kFloat)) : std::nullopt,
             add = after.add.defined() ? OptionalTensor(in_float(after.add)) : std::nullopt;
  auto y = op.call(in_float(x), in_float(weight), shift, add, after.activation == Activation::relu);
  if (after.activation == Activation::silu) at::silu_(y);
  return y.to(x.scalar_type());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> winograd_backward(const at::Tensor& gradient,
                                                                 const at::Tensor& x,
                                                                 const at::Tensor& weight,
                                                                 std::array<bool, 3> wanted) {
  static const auto op = dispatched<decltype(backward_on_cpu)>("millrace::winograd_backward");
  auto [dx, dw, db] = op.call(in_float(gradient), in_float(x), in_float(weight), wanted);
  const auto type = x.scalar_type();
  return {dx.defined() ? dx.to(type) : dx, dw, db};
}

}  // namespace millrace
