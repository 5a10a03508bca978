// XXH3 by AVX2 instructions, for digest.cpp, which looks whether the processor has them. Nothing
// else may be in here.
#include "millrace/base/digest_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace millrace {

std::uint64_t digest_avx2(const void* bytes, std::size_t size, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

}  // namespace millrace
