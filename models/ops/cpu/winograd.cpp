#include "millrace/models/ops/cpu/winograd.h"

#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <c10/util/BFloat16.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>

#include "millrace/models/ops/cpu/channels_last.h"
#include "millrace/models/ops/cpu/panel_product.h"
#include "millrace/models/ops/cpu/touched_pixels.h"
#include "millrace/models/ops/cpu/winograd_layout.h"
#include "millrace/models/ops/cpu/winograd_tiles.h"

namespace millrace {
namespace {

using namespace winograd_layout;

using OptionalTensor = std::optional<at::Tensor>;

/// Returns matrices for filters, with rows padded as well.
Matrices filter_matrices(std::int64_t rows, std::int64_t columns) {
  return {padded(rows), columns, rows % kPanel != 0 || columns % kPanel != 0};
}

/// Transforms filters, (K, 3, 3, C) in memory, to matrices (C, K).
Matrices transformed(const at::Tensor& weight) {
  constexpr std::int64_t kChannels = 16;  // transformed together
  const auto out = weight.size(0), in = weight.size(1);
  const auto result = filter_matrices(in, out);
  const auto* const from = weight.const_data_ptr<float>();
  const auto blocks = in / kChannels;
  at::parallel_for(
      0, divide_up(out, kPanel) * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
        std::array<float, kChannels * 9 * kPanel> turned;  // (kChannels, 9, kPanel)
        for (auto task = begin; task < end; ++task) {
          const auto first_k = task / blocks * kPanel, first_c = task % blocks * kChannels,
                     count = std::min(kPanel, out - first_k);
          for (std::int64_t k = 0; k < count; ++k)
            for (std::int64_t i = 0; i < 9; ++i)
              for (std::int64_t c = 0; c < kChannels; ++c)
                turned[static_cast<std::size_t>((c * 9 + i) * kPanel + k)] =
                    from[((first_k + k) * 9 + i) * in + first_c + c];
          for (std::int64_t c = 0; c < kChannels; ++c) {
            Block<3> g;
            for (std::size_t i = 0; i < 9; ++i)
              g[i] = turned.data() + (9 * static_cast<std::size_t>(c) + i) * kPanel;
            transform_filter(g, count, result.row(first_c + c, first_k));
          }
        }
      });
  return result;
}

/// Transforms filters turned by 180 degrees to matrices (K, C), for gradients of inputs.
Matrices transformed_backward(const at::Tensor& weight) {
  const auto out = weight.size(0), in = weight.size(1);
  const auto result = filter_matrices(out, in);
  const auto* const from = weight.const_data_ptr<float>();
  at::parallel_for(0, out, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) {
      Block<3> g;
      for (std::size_t i = 0; i < 9; ++i)
        g[8 - i] = from + (9 * k + static_cast<std::int64_t>(i)) * in;
      transform_filter(g, in, result.row(k));
    }
  });
  return result;
}

/// The steps after the convolution's sums.
struct Epilogue {
  const float* bias = nullptr;  // one per channel
  at::TensorList add = {};      // empty, or one for each map
  bool relu = false;
};

/// Returns the addresses of the values of maps.
template <class Value>
std::vector<const Value*> values_of(at::TensorList maps) {
  std::vector<const Value*> values;
  for (const auto& map : maps) values.push_back(map.const_data_ptr<Value>());
  return values;
}

/// Convolves channels-last maps with transformed filters in the `wanted` tiles; other tiles are
/// zero.
template <class Value>
std::vector<at::Tensor> convolve_tiles(at::TensorList maps, const std::vector<Tiles>& tiles,
                                       const std::vector<Tile>& wanted, const Matrices& filters,
                                       std::int64_t out, const Epilogue& after) {
  constexpr std::int64_t kMostTiles = 56;  // their products fit in L2
  const auto in = maps[0].size(1), computed = std::ssize(wanted);
  std::vector<at::Tensor> results;
  for (const auto& map : maps)
    results.push_back(
        at::empty({map.size(0), out, map.size(2), map.size(3)}, map.options(), kChannelsLast));
  if (computed < count_of(tiles))
    for (const auto& result : results) result.zero_();
  if (computed == 0) return results;
  const auto from = values_of<Value>(maps), add = values_of<Value>(after.add);
  std::vector<Value*> to;
  for (const auto& result : results) to.push_back(result.mutable_data_ptr<Value>());
  // Each thread has the same number of blocks, of about the same size.
  const std::int64_t threads = at::get_num_threads();
  const auto rounds = divide_up(computed, threads * kMostTiles),
             block = divide_up(computed, threads * rounds), blocks = divide_up(computed, block);
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::vector<Value> zeros(static_cast<std::size_t>(in), Value(0));
    const Matrices inputs(block, in, in % kPanel != 0), products(block, out, false);
    for (auto number = begin; number < end; ++number) {
      const auto first = number * block, count = std::min(block, computed - first);
      const auto* const tile = wanted.data() + first;
      for (std::int64_t i = 0; i < count; ++i)
        transform_input(channels_of<6>(tiles[tile[i].map].block<6>(tile[i].number, 1),
                                       from[tile[i].map], in, zeros.data()),
                        in, inputs.row(i));
      for (std::int64_t place = 0; place < kPlaces; ++place)
        for (std::int64_t k = 0; k < out; k += kPanel)
          multiply_panel(count, padded(in), inputs.at(place, 0, 0), inputs.panel(),
                         filters.at(place, 0, k), products.at(place, 0, k));
      for (std::int64_t i = 0; i < count; ++i) {
        const auto map = tile[i].map;
        std::array<Pixel<Value>, 16> pixels;
        const auto places = tiles[map].block<4>(tile[i].number, 0);
        for (std::size_t j = 0; j < pixels.size(); ++j)
          if (places[j] >= 0)
            pixels[j] = {to[map] + places[j] * out,
                         add.empty() ? nullptr : add[map] + places[j] * out};
        transform_output(products.const_row(i), out, after.bias, after.relu, pixels);
      }
    }
  });
  return results;
}

/// Returns the gradient of the weight (K, C, 3, 3) in float, from the tiles `used`; all maps are
/// channels last.
template <class Value>
at::Tensor weight_gradient(at::TensorList gradients, at::TensorList maps,
                           const std::vector<Tiles>& tiles, const std::vector<Tile>& used) {
  constexpr std::int64_t kMostTiles = 256;  // their transforms fit in the last-level cache
  const auto in = maps[0].size(1), out = gradients[0].size(1), all = std::ssize(used);
  auto result = at::empty({out, in, 3, 3}, maps[0].options().dtype(at::kFloat), kChannelsLast);
  if (all == 0) return result.zero_();
  const auto from = values_of<Value>(maps), slopes = values_of<Value>(gradients);
  const auto block = std::min(kMostTiles, all);
  const Matrices inputs(block, in, in % kPanel != 0), outputs(block, out, out % kPanel != 0),
      sums(padded(out), in, false);
  const std::vector<Value> zeros(static_cast<std::size_t>(std::max(in, out)), Value(0));
  for (std::int64_t first = 0; first < all; first += block) {
    const auto count = std::min(block, all - first);
    const auto* const tile = used.data() + first;
    at::parallel_for(0, count, 8, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        const auto [map, number] = tile[i];
        transform_input(channels_of<6>(tiles[map].block<6>(number, 1), from[map], in, zeros.data()),
                        in, inputs.row(i));
        transform_gradient(
            channels_of<4>(tiles[map].block<4>(number, 0), slopes[map], out, zeros.data()), out,
            outputs.row(i));
      }
    });
    const auto panels = divide_up(out, kPanel);
    at::parallel_for(0, kPlaces * panels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto task = begin; task < end; ++task) {
        const auto place = task / panels, k = task % panels * kPanel;
        for (std::int64_t c = 0; c < in; c += kPanel)
          multiply_transposed_panel(count, outputs.at(place, 0, k), inputs.at(place, 0, c),
                                    sums.at(place, k, c), /*add=*/first > 0);
      }
    });
  }
  auto* const to = result.mutable_data_ptr<float>();
  at::parallel_for(0, out, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) {
      std::array<float*, 9> places;
      for (std::size_t i = 0; i < 9; ++i)
        places[i] = to + (9 * k + static_cast<std::int64_t>(i)) * in;
      transform_filter_gradient(sums.const_row(k), in, places);
    }
  });
  return result;
}

/// Returns the sum over the pixels of all maps, (K) in float.
at::Tensor bias_gradient(at::TensorList gradients) {
  at::Tensor sum;
  for (const auto& gradient : gradients) {
    const auto own = at::sum(gradient, {0, 2, 3}, /*keepdim=*/false, at::kFloat);
    sum = sum.defined() ? sum.add_(own) : own;
  }
  return sum;
}

/// Calls work(Value{}) for the pixel type of the maps.
template <class Work>
auto for_type_of(at::TensorList maps, const Work& work) {
  return maps[0].scalar_type() == at::kFloat ? work(float{}) : work(at::BFloat16{});
}

std::vector<at::Tensor> winograd_on_cpu(at::TensorList maps, const at::Tensor& weight,
                                        const OptionalTensor& bias, at::TensorList add, bool relu) {
  const auto tiles = tiles_of(maps);
  return for_type_of(maps, [&]<class Value>(Value) {
    return convolve_tiles<Value>(maps, tiles, all_tiles(tiles), transformed(weight), weight.size(0),
                                 {bias ? bias->const_data_ptr<float>() : nullptr, add, relu});
  });
}

using Gradients = std::tuple<std::vector<at::Tensor>, at::Tensor, at::Tensor>;

Gradients winograd_backward_on_cpu(at::TensorList gradients, at::TensorList maps,
                                   const at::Tensor& weight, std::array<bool, 3> wanted) {
  const auto tiles = tiles_of(maps);
  std::vector<TouchedPixels> touched;
  for (const auto& gradient : gradients) touched.push_back(touched_pixels(gradient));
  return for_type_of(maps, [&]<class Value>(Value) {
    Gradients result;
    auto& [dx, dw, db] = result;
    if (wanted[0])
      dx = convolve_tiles<Value>(gradients, tiles, touched_tiles<6>(tiles, touched, 1),
                                 transformed_backward(weight), weight.size(1), {});
    if (wanted[1])
      dw = weight_gradient<Value>(gradients, maps, tiles, touched_tiles<4>(tiles, touched, 0));
    if (wanted[2]) db = bias_gradient(gradients);
    return result;
  });
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) {
  library.impl("winograd", winograd_on_cpu);
  library.impl("winograd_backward", winograd_backward_on_cpu);
}

/// Returns true if the processor has instructions for products of bf16 matrices (AMX).
bool has_bf16_matrices() {
  const auto capabilities = at::cpu::get_cpu_capabilities();
  const auto found = capabilities.find("amx_bf16");
  return found != capabilities.end() && found->second.toBool();
}

std::vector<at::Tensor> channels_last(at::TensorList maps) {
  std::vector<at::Tensor> result;
  for (const auto& map : maps) result.push_back(map.contiguous(kChannelsLast));
  return result;
}

/// Returns true for float, and for bf16 unless the processor multiplies its matrices: computing it
/// as float is then faster.
bool computes(at::ScalarType type) {
  static const bool faster = !has_bf16_matrices();
  return type == at::kFloat || (type == at::kBFloat16 && faster);
}

}  // namespace

bool winograd_fits(at::TensorList maps, const at::Tensor& weight) {
  const auto& x = maps[0];
  if (!x.is_cpu() || !computes(x.scalar_type()) || weight.scalar_type() != x.scalar_type() ||
      weight.size(2) != 3 || weight.size(3) != 3 || !multiplies_panels() ||
      std::ranges::any_of(maps, [](const at::Tensor& map) { return map.numel() == 0; }))
    return false;
  constexpr std::int64_t kLanes = 16;
  const auto out = weight.size(0), in = weight.size(1);
  std::int64_t pixels = 0, in_tiles = 0;
  for (const auto& tiles : tiles_of(maps)) {
    pixels += tiles.height * tiles.width;
    in_tiles += tiles.of_image() * kTileSide * kTileSide;
  }
  // Padding of channels or tiles may take half of the work, and the weight's transform costs time.
  // Direct convolutions in bf16 are twice as fast as in float.
  const bool is_float = x.scalar_type() == at::kFloat;
  return out % kLanes == 0 && in % kLanes == 0 && padded(out) * padded(in) < 2 * out * in &&
         in_tiles <= 2 * pixels && pixels >= (is_float ? 128 : 512) &&
         pixels * (is_float ? 2048 : 128) >= in * out;
}

std::vector<at::Tensor> winograd(at::TensorList maps, const at::Tensor& weight,
                                 const at::Tensor& bias, at::TensorList add, bool relu) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("millrace::winograd", "")
                             .typed<decltype(winograd_on_cpu)>();
  return op.call(channels_last(maps), weight.to(at::kFloat).contiguous(kChannelsLast),
                 bias.defined() ? OptionalTensor(bias.to(at::kFloat)) : std::nullopt,
                 channels_last(add), relu);
}

Gradients winograd_backward(at::TensorList gradients, at::TensorList maps, const at::Tensor& weight,
                            std::array<bool, 3> wanted) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("millrace::winograd_backward", "")
                             .typed<decltype(winograd_backward_on_cpu)>();
  return op.call(channels_last(gradients), channels_last(maps),
                 weight.to(at::kFloat).contiguous(kChannelsLast), wanted);
}

}  // namespace millrace
