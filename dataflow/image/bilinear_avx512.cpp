// Compiled for AVX-512 with byte permutations (VBMI: Ice Lake, Zen 4 and later), so it includes and
// defines only what no other file shares.
#include "millrace/dataflow/image/bilinear_kernel.h"

#ifdef __AVX512VBMI__
#include <immintrin.h>

namespace millrace {
namespace {

/// Computes one window: sixteen values in sixteenths, each in the lower half of 32 bits.
__m512i sixteen(const std::uint8_t* row, const WidePlan& plan, std::size_t w) {
  constexpr __mmask64 kEven = 0x5555555555555555;  // the other half of each 16 bits is zero
  const auto pairs = _mm512_maskz_permutexvar_epi8(kEven, _mm512_load_si512(plan.picks + w * 64),
                                                   _mm512_loadu_si512(row + plan.starts[w]));
  const auto sums = _mm512_madd_epi16(pairs, _mm512_load_si512(plan.weights + w * 32));
  return _mm512_srli_epi32(sums, 4);
}

void widen(const std::uint8_t* row, const WidePlan& plan, std::int16_t* out) {
  const auto lower_halves =
      _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26,
                       24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  for (std::size_t w = 0; w < plan.windows; w += 2, out += 32)
    _mm512_store_si512(out, _mm512_permutex2var_epi16(sixteen(row, plan, w), lower_halves,
                                                      sixteen(row, plan, w + 1)));
}

__m512i sum_of(__m512i upper, __m512i lower, __m512i upper_weight, __m512i lower_weight) {
  const auto sum = _mm512_add_epi16(_mm512_mulhi_epi16(upper, upper_weight),
                                    _mm512_mulhi_epi16(lower, lower_weight));
  return _mm512_srai_epi16(_mm512_add_epi16(sum, _mm512_set1_epi16(2)), 2);
}

/// Packs two vectors of words in order; the instruction packs within 128-bit lanes.
__m512i packed(__m512i first, __m512i second) {
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                  _mm512_packus_epi16(first, second));
}

void blend(const std::int16_t* upper, const std::int16_t* lower, const std::int16_t* weights,
           std::uint8_t* out, std::size_t size) {
  const auto first = _mm512_set1_epi16(weights[0]), second = _mm512_set1_epi16(weights[1]);
  std::size_t i = 0;
  for (; i + 64 <= size; i += 64) {
    const auto low =
        sum_of(_mm512_loadu_si512(upper + i), _mm512_loadu_si512(lower + i), first, second);
    const auto high = sum_of(_mm512_loadu_si512(upper + i + 32), _mm512_loadu_si512(lower + i + 32),
                             first, second);
    _mm512_storeu_si512(out + i, packed(low, high));
  }
  if (i == size) return;
  const __mmask64 rest = ~__mmask64{0} >> (64 - (size - i));
  const auto low = static_cast<__mmask32>(rest), high = static_cast<__mmask32>(rest >> 32);
  const auto left = sum_of(_mm512_maskz_loadu_epi16(low, upper + i),
                           _mm512_maskz_loadu_epi16(low, lower + i), first, second);
  const auto right = sum_of(_mm512_maskz_loadu_epi16(high, upper + i + 32),
                            _mm512_maskz_loadu_epi16(high, lower + i + 32), first, second);
  _mm512_mask_storeu_epi8(out + i, rest, packed(left, right));
}

}  // namespace

extern const BilinearKernel bilinear_avx512;
const BilinearKernel bilinear_avx512 = {"avx512", 64, 16, 2, 0, widen, blend};

}  // namespace millrace
#endif
