#include "base/digest.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

std::uint64_t digest(const void* bytes, std::size_t size, std::uint64_t seed) {
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
