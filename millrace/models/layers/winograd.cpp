#include "millrace/models/layers/winograd.h"

#include <ATen/Parallel.h>
#include <ATen/cpu/Utils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sum.h>
#include <c10/util/BFloat16.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "millrace/models/layers/panel_product.h"
#include "millrace/models/layers/touched_pixels.h"
#include "millrace/models/layers/winograd_layout.h"
#include "millrace/models/layers/winograd_tiles.h"
#include "millrace/models/ops/dispatched.h"

namespace millrace {
namespace {

using namespace winograd_layout;

using OptionalTensor = std::optional<at::Tensor>;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

/// Matrices for filters, rows padded, too.
Matrices filter_matrices(std::int64_t rows, std::int64_t columns) {
  return {padded(rows), columns, rows % kPanel != 0 || columns % kPanel != 0};
}

/// Filters (K, 3, 3, C) in memory as matrices (C, K).
Matrices transformed(const at::Tensor& weight) {
  constexpr std::int64_t kChannels = 16;  // transposed at once
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

/// The same filters turned by 180 degrees, as matrices (K, C): for gradients of inputs.
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

/// What comes after the sums of `out` channels.
template <class Value>
struct Epilogue {
  const float* bias = nullptr;
  const Value* add = nullptr;
  bool relu = false;
};

/// The convolution of x, channels last, with transformed filters, in the tiles numbered; zeros in
/// the others.
template <class Value>
at::Tensor convolve_tiles(const at::Tensor& x, const std::vector<std::int64_t>& numbers,
                          const Matrices& filters, std::int64_t out, const Epilogue<Value>& after) {
  constexpr std::int64_t kMostTiles = 56;  // whose products fit L2
  const Tiles tiles(x);
  const auto in = x.size(1), computed = std::ssize(numbers);
  auto result = at::empty({x.size(0), out, tiles.height, tiles.width}, x.options(), kChannelsLast);
  if (computed < tiles.count) result.zero_();
  if (computed == 0) return result;
  const auto* const from = x.const_data_ptr<Value>();
  auto* const to = result.mutable_data_ptr<Value>();
  // As many blocks for each thread, of about the same size.
  const std::int64_t threads = at::get_num_threads();
  const auto rounds = divide_up(computed, threads * kMostTiles),
             block = divide_up(computed, threads * rounds), blocks = divide_up(computed, block);
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::vector<Value> zeros(static_cast<std::size_t>(in), Value(0));
    const Matrices inputs(block, in, in % kPanel != 0), products(block, out, false);
    for (auto number = begin; number < end; ++number) {
      const auto first = number * block, count = std::min(block, computed - first);
      const auto* const tile = numbers.data() + first;
      for (std::int64_t i = 0; i < count; ++i)
        transform_input(channels_of<6>(tiles.block<6>(tile[i], 1), from, in, zeros.data()), in,
                        inputs.row(i));
      for (std::int64_t place = 0; place < kPlaces; ++place)
        for (std::int64_t k = 0; k < out; k += kPanel)
          multiply_panel(count, padded(in), inputs.at(place, 0, 0), inputs.panel(),
                         filters.at(place, 0, k), products.at(place, 0, k));
      for (std::int64_t i = 0; i < count; ++i) {
        std::array<Pixel<Value>, 16> pixels;
        const auto places = tiles.block<4>(tile[i], 0);
        for (std::size_t j = 0; j < pixels.size(); ++j)
          if (places[j] >= 0)
            pixels[j] = {to + places[j] * out, after.add ? after.add + places[j] * out : nullptr};
        transform_output(products.const_row(i), out, after.bias, after.relu, pixels);
      }
    }
  });
  return result;
}

/// The gradient of the weight (K, C, 3, 3) in float, from the tiles numbered; all are channels
/// last.
template <class Value>
at::Tensor weight_gradient(const at::Tensor& gradient, const at::Tensor& x,
                           const std::vector<std::int64_t>& numbers) {
  constexpr std::int64_t kMostTiles = 256;  // whose transforms lie in the last cache
  const Tiles tiles(x);
  const auto in = x.size(1), out = gradient.size(1), used = std::ssize(numbers);
  auto result = at::empty({out, in, 3, 3}, x.options().dtype(at::kFloat), kChannelsLast);
  if (used == 0) return result.zero_();
  const auto* const from = x.const_data_ptr<Value>();
  const auto* const slopes = gradient.const_data_ptr<Value>();
  const auto block = std::min(kMostTiles, used);
  const Matrices inputs(block, in, in % kPanel != 0), outputs(block, out, out % kPanel != 0),
      sums(padded(out), in, false);
  const std::vector<Value> zeros(static_cast<std::size_t>(std::max(in, out)), Value(0));
  for (std::int64_t first = 0; first < used; first += block) {
    const auto count = std::min(block, used - first);
    const auto* const tile = numbers.data() + first;
    at::parallel_for(0, count, 8, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        transform_input(channels_of<6>(tiles.block<6>(tile[i], 1), from, in, zeros.data()), in,
                        inputs.row(i));
        transform_gradient(channels_of<4>(tiles.block<4>(tile[i], 0), slopes, out, zeros.data()),
                           out, outputs.row(i));
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

/// work(Value{}) for the type of the pixels of x.
template <class Work>
auto for_type_of(const at::Tensor& x, const Work& work) {
  return x.scalar_type() == at::kFloat ? work(float{}) : work(at::BFloat16{});
}

at::Tensor on_cpu(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                  const OptionalTensor& add, bool relu) {
  return for_type_of(x, [&]<class Value>(Value) {
    return convolve_tiles<Value>(x, Tiles(x).all(), transformed(weight), weight.size(0),
                                 {bias ? bias->const_data_ptr<float>() : nullptr,
                                  add ? add->const_data_ptr<Value>() : nullptr, relu});
  });
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> backward_on_cpu(const at::Tensor& gradient,
                                                               const at::Tensor& x,
                                                               const at::Tensor& weight,
                                                               std::array<bool, 3> wanted) {
  return for_type_of(x, [&]<class Value>(Value) {
    at::Tensor dx, dw, db;
    const Tiles tiles(x);
    const auto touched = touched_pixels(gradient);
    if (wanted[0])
      dx = convolve_tiles<Value>(gradient, tiles.with<6>(touched, 1), transformed_backward(weight),
                                 weight.size(1), {});
    if (wanted[1]) dw = weight_gradient<Value>(gradient, x, tiles.with<4>(touched, 0));
    if (wanted[2]) db = at::sum(gradient, {0, 2, 3}, /*keepdim=*/false, at::kFloat);
    return std::tuple(dx, dw, db);
  });
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

}  // namespace

bool winograd_fits(const at::Tensor& x, const at::Tensor& weight) {
  if (!x.is_cpu() || !computes(x.scalar_type()) || weight.scalar_type() != x.scalar_type() ||
      weight.size(2) != 3 || weight.size(3) != 3 || x.numel() == 0 || !multiplies_panels())
    return false;
  constexpr std::int64_t kLanes = 16;
  const auto out = weight.size(0), in = weight.size(1), pixels = x.size(2) * x.size(3);
  const auto in_tiles = Tiles(x).of_image() * kTileSide * kTileSide;
  // Padding of channels or tiles may take half of the work, and transforming the weight is work.
  // Direct sums in bf16 are twice as fast.
  const bool is_float = x.scalar_type() == at::kFloat;
  return out % kLanes == 0 && in % kLanes == 0 && padded(out) * padded(in) < 2 * out * in &&
         in_tiles <= 2 * pixels && pixels >= (is_float ? 128 : 512) &&
         pixels * (is_float ? 2048 : 128) >= in * out;
}

at::Tensor winograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const After& after) {
  static const auto op = dispatched<decltype(on_cpu)>("millrace::winograd");
  const auto shift = bias.defined() ? OptionalTensor(bias.to(at::kFloat)) : std::nullopt,
             add = after.add.defined() ? OptionalTensor(after.add.contiguous(kChannelsLast))
                                       : std::nullopt;
  auto y = op.call(x.contiguous(kChannelsLast), weight.to(at::kFloat).contiguous(kChannelsLast),
                   shift, add, after.activation == Activation::relu);
  return after.activation == Activation::silu ? at::silu_(y) : y;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> winograd_backward(const at::Tensor& gradient,
                                                                 const at::Tensor& x,
                                                                 const at::Tensor& weight,
                                                                 std::array<bool, 3> wanted) {
  static const auto op = dispatched<decltype(backward_on_cpu)>("millrace::winograd_backward");
  return op.call(gradient.contiguous(kChannelsLast), x.contiguous(kChannelsLast),
                 weight.to(at::kFloat).contiguous(kChannelsLast), wanted);
}

}  // namespace millrace
