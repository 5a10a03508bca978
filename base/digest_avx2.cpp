// XXH3 with AVX2 instructions, 1.5 times as fast for long inputs. digest.cpp calls it if the
// processor supports AVX2, so this file must contain no other code.
#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace millrace {

std::uint64_t digest_avx2(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

}  // namespace millrace
