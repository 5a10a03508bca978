#include "millrace/base/digest.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

std::uint64_t digest_avx2(const void* bytes, std::size_t size, std::uint64_t seed);

namespace {

constexpr std::size_t kLong = 4096;  // bytes from which AVX2 is faster

bool has_avx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
#else
  return false;
#endif
}

}  // namespace

std::uint64_t digest(const void* bytes, std::size_t size, std::uint64_t seed) {
  if (size >= kLong && has_avx2()) return digest_avx2(bytes, size, seed);
  return XXH3_64bits_withSeed(bytes, size, seed);
}

std::uint64_t digest_of_parts(std::span<const std::string_view> parts) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const auto part : parts) XXH3_64bits_update(&state, part.data(), part.size());
  return XXH3_64bits_digest(&state);
}

WideDigest wide_digest(const void* bytes, std::size_t size) {
  const auto sum = XXH3_128bits(bytes, size);
  return {sum.high64, sum.low64};
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace millrace
