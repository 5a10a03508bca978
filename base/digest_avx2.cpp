// XXH3 with AVX2 instructions, a half faster for long inputs. digest.cpp calls it if the processor
// has them; nothing else may be in here.
#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace millrace {

std::uint64_t digest_avx2(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

}  // namespace millrace
