#include "millrace/models/ops/cpu/winograd_tiles.h"

#include <c10/util/BFloat16.h>

#include "millrace/models/ops/cpu/panel_product.h"
#include "millrace/models/ops/cpu/simd.h"

namespace millrace {
namespace {

// Sixteen channels at a time, in one or more registers.
constexpr std::int64_t kLanes = 16;
using Lanes __attribute__((vector_size(4 * kLanes), aligned(4), may_alias)) = float;
#define MILLRACE_INLINE [[gnu::always_inline]] inline

using Bits __attribute__((vector_size(4 * kLanes))) = std::uint32_t;
using Halves __attribute__((vector_size(2 * kLanes), aligned(2), may_alias)) = std::uint16_t;

// A bf16 is the upper half of a float; a float is rounded to the nearest bf16, ties to even.
MILLRACE_INLINE void load(const float* from, Lanes& x) {
  x = *reinterpret_cast<const Lanes*>(from);
}
MILLRACE_INLINE void load(const at::BFloat16* from, Lanes& x) {
  x = (Lanes)(__builtin_convertvector(*reinterpret_cast<const Halves*>(from), Bits) << 16);
}
MILLRACE_INLINE void store(const Lanes& x, float* to) { *reinterpret_cast<Lanes*>(to) = x; }
MILLRACE_INLINE void store(const Lanes& x, at::BFloat16* to) {
  const Bits bits = (Bits)x, rounded = bits + 0x7fff + ((bits >> 16) & 1);
  *reinterpret_cast<Halves*>(to) =
      __builtin_convertvector((x == x ? rounded : bits | 0x400000) >> 16, Halves);
}

// The points are 0, +-p, +-q, infinity.
constexpr float p = 0.75F, q = 1.5F, pp = p * p, qq = q * q;
constexpr float kNorm0 = 1 / (pp * qq), kNormP = 1 / (2 * pp * (pp - qq)),
                kNormQ = 1 / (2 * qq * (qq - pp));

/// Multiplies by Bt.
struct Input {
  static constexpr std::size_t kFrom = 6, kTo = 6;
  MILLRACE_INLINE static void apply(const Lanes (&d)[6], Lanes (&t)[6]) {
    t[0] = d[4] - (pp + qq) * d[2] + (pp * qq) * d[0];
    t[5] = d[5] - (pp + qq) * d[3] + (pp * qq) * d[1];
    const Lanes even_p = d[4] - qq * d[2], odd_p = d[3] - qq * d[1];
    t[1] = even_p + p * odd_p;
    t[2] = even_p - p * odd_p;
    const Lanes even_q = d[4] - pp * d[2], odd_q = d[3] - pp * d[1];
    t[3] = even_q + q * odd_q;
    t[4] = even_q - q * odd_q;
  }
};

/// Multiplies by G.
struct Filter {
  static constexpr std::size_t kFrom = 3, kTo = 6;
  MILLRACE_INLINE static void apply(const Lanes (&g)[3], Lanes (&t)[6]) {
    t[0] = kNorm0 * g[0];
    const Lanes even_p = kNormP * g[0] + (kNormP * pp) * g[2];
    t[1] = even_p + (kNormP * p) * g[1];
    t[2] = even_p - (kNormP * p) * g[1];
    const Lanes even_q = kNormQ * g[0] + (kNormQ * qq) * g[2];
    t[3] = even_q + (kNormQ * q) * g[1];
    t[4] = even_q - (kNormQ * q) * g[1];
    t[5] = g[2];
  }
};

/// Multiplies by At.
struct Output {
  static constexpr std::size_t kFrom = 6, kTo = 4;
  MILLRACE_INLINE static void apply(const Lanes (&m)[6], Lanes (&y)[4]) {
    const Lanes sum_p = m[1] + m[2], difference_p = m[1] - m[2], sum_q = m[3] + m[4],
                difference_q = m[3] - m[4];
    y[0] = m[0] + sum_p + sum_q;
    y[1] = p * difference_p + q * difference_q;
    y[2] = pp * sum_p + qq * sum_q;
    y[3] = (p * pp) * difference_p + (q * qq) * difference_q + m[5];
  }
};

/// Multiplies by A.
struct Gradient {
  static constexpr std::size_t kFrom = 4, kTo = 6;
  MILLRACE_INLINE static void apply(const Lanes (&y)[4], Lanes (&t)[6]) {
    t[0] = y[0];
    const Lanes even_p = y[0] + pp * y[2], odd_p = y[1] + pp * y[3];
    t[1] = even_p + p * odd_p;
    t[2] = even_p - p * odd_p;
    const Lanes even_q = y[0] + qq * y[2], odd_q = y[1] + qq * y[3];
    t[3] = even_q + q * odd_q;
    t[4] = even_q - q * odd_q;
    t[5] = y[3];
  }
};

/// Multiplies by Gt.
struct FilterGradient {
  static constexpr std::size_t kFrom = 6, kTo = 3;
  MILLRACE_INLINE static void apply(const Lanes (&u)[6], Lanes (&g)[3]) {
    const Lanes sum_p = kNormP * (u[1] + u[2]), sum_q = kNormQ * (u[3] + u[4]);
    g[0] = kNorm0 * u[0] + sum_p + sum_q;
    g[1] = (kNormP * p) * (u[1] - u[2]) + (kNormQ * q) * (u[3] - u[4]);
    g[2] = pp * sum_p + qq * sum_q + u[5];
  }
};

/// Computes M x Mt for one vector of channels, row by row.
template <typename M>
MILLRACE_INLINE void two_sided(const Lanes (&x)[M::kFrom * M::kFrom], Lanes (&y)[M::kTo * M::kTo]) {
  Lanes half[M::kTo][M::kFrom];
#pragma GCC unroll 6
  for (std::size_t column = 0; column < M::kFrom; ++column) {
    Lanes from[M::kFrom], result[M::kTo];
#pragma GCC unroll 6
    for (std::size_t row = 0; row < M::kFrom; ++row) from[row] = x[row * M::kFrom + column];
    M::apply(from, result);
#pragma GCC unroll 6
    for (std::size_t row = 0; row < M::kTo; ++row) half[row][column] = result[row];
  }
#pragma GCC unroll 6
  for (std::size_t row = 0; row < M::kTo; ++row) {
    Lanes result[M::kTo];
    M::apply(half[row], result);
#pragma GCC unroll 6
    for (std::size_t column = 0; column < M::kTo; ++column)
      y[row * M::kTo + column] = result[column];
  }
}

MILLRACE_INLINE std::int64_t offset(std::int64_t channel, std::int64_t panel) {
  return channel / kPanel * panel + channel % kPanel;
}

/// Computes M x Mt of a block of pixels and stores it to places.
template <typename M, class Value>
MILLRACE_INLINE void to_places(const Block<M::kFrom, Value>& block, std::int64_t channels,
                               const Places& to) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Lanes x[M::kFrom * M::kFrom], y[M::kTo * M::kTo];
#pragma GCC unroll 36
    for (std::size_t i = 0; i < M::kFrom * M::kFrom; ++i) load(block[i] + c, x[i]);
    two_sided<M>(x, y);
    auto* at = to.at + offset(c, to.panel);
#pragma GCC unroll 36
    for (std::size_t i = 0; i < M::kTo * M::kTo; ++i, at += to.place) store(y[i], at);
  }
}

/// Computes M x Mt of places for 16 channels from c.
template <typename M>
MILLRACE_INLINE void from_places(const ConstPlaces& places, std::int64_t c,
                                 Lanes (&y)[M::kTo * M::kTo]) {
  Lanes x[M::kFrom * M::kFrom];
  const auto* from = places.at + offset(c, places.panel);
#pragma GCC unroll 36
  for (std::size_t i = 0; i < M::kFrom * M::kFrom; ++i, from += places.place) load(from, x[i]);
  two_sided<M>(x, y);
}

template <class Value>
MILLRACE_INLINE void to_pixels(const ConstPlaces& m, std::int64_t channels, const float* bias,
                               bool relu, const std::array<Pixel<Value>, 16>& pixels) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Lanes values[16], shift{};
    from_places<Output>(m, c, values);
    if (bias) load(bias + c, shift);
    for (std::size_t i = 0; i < 16; ++i) {
      const auto& [to, add] = pixels[i];
      if (!to) continue;
      Lanes y = values[i] + shift, more{};
      if (add) load(add + c, more);
      y += more;
      store(relu ? (y < 0 ? Lanes{} : y) : y, to + c);  // NaN is kept, as with at::relu
    }
  }
}

}  // namespace

// target_clones applies to functions, not to templates.
template <>
MILLRACE_SIMD_512 void transform_input(const Block<6, float>& d, std::int64_t channels,
                                       const Places& to) {
  to_places<Input>(d, channels, to);
}
template <>
MILLRACE_SIMD_512 void transform_input(const Block<6, at::BFloat16>& d, std::int64_t channels,
                                       const Places& to) {
  to_places<Input>(d, channels, to);
}

template <>
MILLRACE_SIMD_512 void transform_gradient(const Block<4, float>& y, std::int64_t channels,
                                          const Places& to) {
  to_places<Gradient>(y, channels, to);
}
template <>
MILLRACE_SIMD_512 void transform_gradient(const Block<4, at::BFloat16>& y, std::int64_t channels,
                                          const Places& to) {
  to_places<Gradient>(y, channels, to);
}

template <>
MILLRACE_SIMD_512 void transform_output(const ConstPlaces& m, std::int64_t channels,
                                        const float* bias, bool relu,
                                        const std::array<Pixel<float>, 16>& pixels) {
  to_pixels(m, channels, bias, relu, pixels);
}
template <>
MILLRACE_SIMD_512 void transform_output(const ConstPlaces& m, std::int64_t channels,
                                        const float* bias, bool relu,
                                        const std::array<Pixel<at::BFloat16>, 16>& pixels) {
  to_pixels(m, channels, bias, relu, pixels);
}

MILLRACE_SIMD_512
void transform_filter(const Block<3>& g, std::int64_t channels, const Places& to) {
  to_places<Filter>(g, channels, to);
}

MILLRACE_SIMD_512
void transform_filter_gradient(const ConstPlaces& u, std::int64_t channels,
                               const std::array<float*, 9>& to) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Lanes values[9];
    from_places<FilterGradient>(u, c, values);
    for (std::size_t i = 0; i < 9; ++i) store(values[i], to[i] + c);
  }
}

}  // namespace millrace
