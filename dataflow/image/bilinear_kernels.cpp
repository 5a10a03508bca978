// The kernel for SSE2, which every x86-64 processor has, one pixel at a time; and the selection.
#include <span>

#include "millrace/dataflow/image/bilinear.h"
#include "millrace/dataflow/image/bilinear_kernel.h"

#ifdef __SSE2__
#include <emmintrin.h>

#include <cstring>
#include <vector>
#endif

namespace millrace {

#ifdef __SSE2__
extern const BilinearKernel bilinear_avx2, bilinear_avx512;

namespace {

constexpr std::int32_t kValues = 3;  // channels of a pixel
constexpr std::int32_t kRead = 8;    // bytes read: two pixels and two more

void widen(const std::uint8_t* row, const WidePlan& plan, std::int16_t* out) {
  for (std::size_t w = 0; w < plan.windows; ++w, out += kValues) {
    const auto zero = _mm_setzero_si128();
    const auto bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + plan.starts[w]));
    const auto pairs =  // R R' G G' B B' of the pixel and the next
        _mm_unpacklo_epi8(_mm_unpacklo_epi8(bytes, _mm_srli_epi64(bytes, 8 * kValues)), zero);
    std::int32_t both = 0;
    std::memcpy(&both, plan.weights + w * 2 * kValues, sizeof both);
    const auto sums = _mm_srli_epi32(_mm_madd_epi16(pairs, _mm_set1_epi32(both)), 4);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packs_epi32(sums, sums));
  }
}

void blend(const std::int16_t* upper, const std::int16_t* lower, const std::int16_t* weights,
           std::uint8_t* out, std::size_t size) {
  const auto upper_weight = _mm_set1_epi16(weights[0]), lower_weight = _mm_set1_epi16(weights[1]);
  const auto eight = [&](std::size_t at) {
    const auto load = [at](const std::int16_t* row) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + at));
    };
    const auto sum = _mm_add_epi16(_mm_mulhi_epi16(load(upper), upper_weight),
                                   _mm_mulhi_epi16(load(lower), lower_weight));
    return _mm_srai_epi16(_mm_add_epi16(sum, _mm_set1_epi16(2)), 2);
  };
  std::size_t i = 0;
  for (; i + 16 <= size; i += 16)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm_packus_epi16(eight(i), eight(i + 8)));
  for (; i < size; ++i)
    out[i] = static_cast<std::uint8_t>(
        ((upper[i] * weights[0] >> 16) + (lower[i] * weights[1] >> 16) + 2) >> 2);
}

constexpr BilinearKernel kSse2 = {"sse2", kRead, kValues, 1, kRead, widen, blend};

std::vector<BilinearKernel> usable() {
  std::vector<BilinearKernel> kernels;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi"))
    kernels.push_back(bilinear_avx512);
  if (__builtin_cpu_supports("avx2")) kernels.push_back(bilinear_avx2);
  kernels.push_back(kSse2);
  return kernels;
}

}  // namespace
#endif

std::span<const BilinearKernel> bilinear_kernels() {
#ifdef __SSE2__
  static const auto kernels = usable();
  return kernels;
#else
  return {};
#endif
}

}  // namespace millrace
