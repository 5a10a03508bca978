#include "base/digest.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

std::uint64_t digest(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

WideDigest wide_digest(const void* bytes, std::size_t size) {
  const auto sum = XXH3_128bits(bytes, size);
  return {sum.high64, sum.low64};
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace millrace
