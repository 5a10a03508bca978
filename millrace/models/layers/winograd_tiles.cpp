#include "millrace/models/layers/winograd_tiles.h"

#include "millrace/models/layers/panel_product.h"
#include "millrace/models/ops/simd.h"

namespace millrace {
namespace {

// Sixteen channels at once, in as many registers as the processor's take.
constexpr std::int64_t kLanes = 16;
using Lanes __attribute__((vector_size(4 * kLanes), aligned(4), may_alias)) = float;
#define MILLRACE_INLINE [[gnu::always_inline]] inline

MILLRACE_INLINE const Lanes& lanes(const float* from) {
  return *reinterpret_cast<const Lanes*>(from);
}
MILLRACE_INLINE Lanes& lanes(float* to) { return *reinterpret_cast<Lanes*>(to); }

// Points are 0, +-p, +-q, infinity.
constexpr float p = 0.75F, q = 1.5F, pp = p * p, qq = q * q;
constexpr float kNorm0 = 1 / (pp * qq), kNormP = 1 / (2 * pp * (pp - qq)),
                kNormQ = 1 / (2 * qq * (qq - pp));

/// Bt
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

/// G
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

/// At
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

/// A
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

/// Gt
struct FilterGradient {
  static constexpr std::size_t kFrom = 6, kTo = 3;
  MILLRACE_INLINE static void apply(const Lanes (&u)[6], Lanes (&g)[3]) {
    const Lanes sum_p = kNormP * (u[1] + u[2]), sum_q = kNormQ * (u[3] + u[4]);
    g[0] = kNorm0 * u[0] + sum_p + sum_q;
    g[1] = (kNormP * p) * (u[1] - u[2]) + (kNormQ * q) * (u[3] - u[4]);
    g[2] = pp * sum_p + qq * sum_q + u[5];
  }
};

/// M x Mt for one vector of channels, row by row.
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

/// M x Mt of a block of pixels, to places.
template <typename M>
MILLRACE_INLINE void to_places(const Block<M::kFrom>& block, std::int64_t channels,
                               const Places& places) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Lanes x[M::kFrom * M::kFrom], y[M::kTo * M::kTo];
#pragma GCC unroll 36
    for (std::size_t i = 0; i < M::kFrom * M::kFrom; ++i) x[i] = lanes(block[i] + c);
    two_sided<M>(x, y);
    auto* to = places.to + offset(c, places.panel);
#pragma GCC unroll 36
    for (std::size_t i = 0; i < M::kTo * M::kTo; ++i, to += places.place) lanes(to) = y[i];
  }
}

/// M x Mt of places: 16 channels from c.
template <typename M>
MILLRACE_INLINE void from_places(const ConstPlaces& places, std::int64_t c,
                                 Lanes (&y)[M::kTo * M::kTo]) {
  Lanes x[M::kFrom * M::kFrom];
  const auto* from = places.from + offset(c, places.panel);
#pragma GCC unroll 36
  for (std::size_t i = 0; i < M::kFrom * M::kFrom; ++i, from += places.place) x[i] = lanes(from);
  two_sided<M>(x, y);
}

}  // namespace

MILLRACE_SIMD_512
void transform_input(const Block<6>& d, std::int64_t channels, const Places& places) {
  to_places<Input>(d, channels, places);
}

MILLRACE_SIMD_512
void transform_filter(const Block<3>& g, std::int64_t channels, const Places& places) {
  to_places<Filter>(g, channels, places);
}

MILLRACE_SIMD_512
void transform_gradient(const Block<4>& y, std::int64_t channels, const Places& places) {
  to_places<Gradient>(y, channels, places);
}

MILLRACE_SIMD_512
void transform_output(const ConstPlaces& m, std::int64_t channels, const float* bias, bool relu,
                      const std::array<Pixel, 16>& pixels) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Lanes values[16];
    from_places<Output>(m, c, values);
    const Lanes shift = bias ? lanes(bias + c) : Lanes{};
    for (std::size_t i = 0; i < 16; ++i) {
      const auto& [to, add] = pixels[i];
      if (!to) continue;
      Lanes y = values[i] + shift;
      if (add) y += lanes(add + c);
      lanes(to + c) = relu ? (y > 0 ? y : Lanes{}) : y;
    }
  }
}

MILLRACE_SIMD_512
void transform_filter_gradient(const ConstPlaces& u, std::int64_t channels,
                               const std::array<float*, 9>& to) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Lanes values[9];
    from_places<FilterGradient>(u, c, values);
    for (std::size_t i = 0; i < 9; ++i) lanes(to[i] + c) = values[i];
  }
}

}  // namespace millrace
