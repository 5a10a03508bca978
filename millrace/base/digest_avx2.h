// The half of digest.h that wants a processor with AVX2. Internal.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// The same as `digest`, for long inputs a half faster. REQUIRES: the processor has AVX2.
std::uint64_t digest_avx2(const void* bytes, std::size_t size, std::uint64_t seed);

}  // namespace millrace
