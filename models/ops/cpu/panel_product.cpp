#include "millrace/models/ops/cpu/panel_product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace millrace {
namespace {

template <int kLanes>
struct Vector {
  using Type __attribute__((vector_size(4 * kLanes), aligned(4), may_alias)) = float;
};

struct Product {
  std::int64_t depth;
  const float* a;
  std::int64_t a_panel;
  const float* b;
  float* y;
  bool add;
};

/// Keeps kRows rows of y in registers over the whole depth, two vectors of kLanes columns at a
/// time. If kTransposed, only the first panel of a is read.
template <int kLanes, int kRows, bool kTransposed>
[[gnu::always_inline]] inline void multiply_rows(const Product& p) {
  using Lanes = typename Vector<kLanes>::Type;
  constexpr std::int64_t kRow = kTransposed ? 1 : kPanel, kStep = kTransposed ? kPanel : 1;
  const auto whole = kTransposed ? p.depth : kPanel;
  for (std::int64_t column = 0; column < kPanel; column += 2 * kLanes) {
    auto* const y = p.y + column;
    Lanes sum[kRows][2];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = Lanes{};
    const auto* b = p.b + column;
    const auto* panel = p.a;
    for (std::int64_t done = 0; done < p.depth; done += whole, panel += p.a_panel) {
      const auto* a = panel;
      for (std::int64_t k = 0; k < whole; ++k, a += kStep, b += kPanel) {
        const Lanes left = *reinterpret_cast<const Lanes*>(b),
                    right = *reinterpret_cast<const Lanes*>(b + kLanes);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          sum[r][0] += a[r * kRow] * left;
          sum[r][1] += a[r * kRow] * right;
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
      for (int half = 0; half < 2; ++half) {
        auto& to = *reinterpret_cast<Lanes*>(y + r * kPanel + half * kLanes);
        to = p.add ? to + sum[r][half] : sum[r][half];
      }
  }
}

using Kernel = void (*)(const Product&);

// Registers hold two vectors of each row, two of b and one factor: 14 rows with 32 registers, 6
// with 16.
#if defined(__x86_64__)
struct Avx512 {
  static constexpr int kMost = 14;
  static constexpr bool kFast = true;
  template <int kRows, bool kTransposed>
  [[gnu::target("avx512f")]] static void run(const Product& p) {
    multiply_rows<16, kRows, kTransposed>(p);
  }
};

struct Avx2 {
  static constexpr int kMost = 6;
  static constexpr bool kFast = true;
  template <int kRows, bool kTransposed>
  [[gnu::target("avx2,fma")]] static void run(const Product& p) {
    multiply_rows<8, kRows, kTransposed>(p);
  }
};
#endif

struct AnyProcessor {
  static constexpr int kMost = 6;
  static constexpr bool kFast = false;
  template <int kRows, bool kTransposed>
  static void run(const Product& p) {
    multiply_rows<4, kRows, kTransposed>(p);
  }
};

struct Kernels {
  std::int64_t most;
  bool fast;
  std::array<std::array<Kernel, 15>, 2> of;  // [transposed][rows]
};

template <typename Processor>
constexpr Kernels kernels() {
  return []<std::size_t... kRows>(std::index_sequence<kRows...>) {
    Kernels k{Processor::kMost, Processor::kFast, {}};
    ((k.of[0][kRows + 1] = Processor::template run<kRows + 1, false>,
      k.of[1][kRows + 1] = Processor::template run<kRows + 1, true>),
     ...);
    return k;
  }
  (std::make_index_sequence<Processor::kMost>());
}

const Kernels& own_kernels() {
  static const Kernels own = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return kernels<Avx512>();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kernels<Avx2>();
#endif
    return kernels<AnyProcessor>();
  }();
  return own;
}

/// Divides the rows into parts of nearly equal size, since small parts use less of the processor's
/// throughput.
template <typename Do>
void divide(std::int64_t rows, std::int64_t most, const Do& part) {
  const auto parts = (rows + most - 1) / most;
  for (std::int64_t i = 0, first = 0; i < parts; ++i) {
    const auto count = (rows - first + parts - i - 1) / (parts - i);
    part(first, count);
    first += count;
  }
}

}  // namespace

void multiply_panel(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t a_panel,
                    const float* b, float* y) {
  const auto& k = own_kernels();
  divide(rows, k.most, [&](std::int64_t first, std::int64_t count) {
    k.of[0][static_cast<std::size_t>(count)](
        {depth, a + first * kPanel, a_panel, b, y + first * kPanel, false});
  });
}

void multiply_transposed_panel(std::int64_t depth, const float* a, const float* b, float* y,
                               bool add) {
  constexpr std::int64_t kTerms = 32;  // terms summed before adding to y: long sums round more
  const auto& k = own_kernels();
  for (std::int64_t done = 0; done < depth; done += kTerms) {
    const auto now = std::min(kTerms, depth - done);
    divide(kPanel, k.most, [&](std::int64_t first, std::int64_t count) {
      k.of[1][static_cast<std::size_t>(count)]({now, a + done * kPanel + first, 0,
                                                b + done * kPanel, y + first * kPanel,
                                                add || done > 0});
    });
  }
}

bool multiplies_panels() { return own_kernels().fast; }

}  // namespace millrace
