#include "base/digest.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace millrace {

std::uint64_t digest(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace millrace
