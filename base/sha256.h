// SHA-256 (FIPS 180-4), for digests that other programs check too; digest.h is faster.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace millrace
