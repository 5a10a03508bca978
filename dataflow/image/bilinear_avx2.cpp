// Compiled for AVX2, so it includes and defines only what no other file shares.
#include "millrace/dataflow/image/bilinear_kernel.h"

#ifdef __AVX2__
#include <immintrin.h>

namespace millrace {
namespace {

__m256i load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }

/// Computes two windows of four values each.
__m256i eight(const std::uint8_t* row, const WidePlan& plan, std::size_t w) {
  const auto* lower = reinterpret_cast<const __m128i*>(row + plan.starts[w]);
  const auto* upper = reinterpret_cast<const __m128i*>(row + plan.starts[w + 1]);
  const auto pairs = _mm256_shuffle_epi8(
      _mm256_set_m128i(_mm_loadu_si128(upper), _mm_loadu_si128(lower)), load(plan.picks + w * 16));
  return _mm256_srli_epi32(_mm256_madd_epi16(pairs, load(plan.weights + w * 8)), 4);
}

void widen(const std::uint8_t* row, const WidePlan& plan, std::int16_t* out) {
  for (std::size_t w = 0; w < plan.windows; w += 4, out += 16) {
    const auto packed = _mm256_packs_epi32(eight(row, plan, w), eight(row, plan, w + 2));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute4x64_epi64(packed, 0xD8));
  }
}

__m256i sixteen(const std::int16_t* upper, const std::int16_t* lower, __m256i upper_weight,
                __m256i lower_weight) {
  const auto sum = _mm256_add_epi16(_mm256_mulhi_epi16(load(upper), upper_weight),
                                    _mm256_mulhi_epi16(load(lower), lower_weight));
  return _mm256_srai_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(2)), 2);
}

void blend(const std::int16_t* upper, const std::int16_t* lower, const std::int16_t* weights,
           std::uint8_t* out, std::size_t size) {
  const auto first = _mm256_set1_epi16(weights[0]), second = _mm256_set1_epi16(weights[1]);
  std::size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    const auto packed = _mm256_packus_epi16(sixteen(upper + i, lower + i, first, second),
                                            sixteen(upper + i + 16, lower + i + 16, first, second));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                        _mm256_permute4x64_epi64(packed, 0xD8));
  }
  for (; i < size; ++i)
    out[i] = static_cast<std::uint8_t>(
        ((upper[i] * weights[0] >> 16) + (lower[i] * weights[1] >> 16) + 2) >> 2);
}

}  // namespace

extern const BilinearKernel bilinear_avx2;
const BilinearKernel bilinear_avx2 = {"avx2", 16, 4, 4, 0, widen, blend};

}  // namespace millrace
#endif
