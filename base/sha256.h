// SHA-256 (FIPS 180-4), for digests that other programs also verify. The hashes of digest.h are
// faster.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// Returns 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace millrace
