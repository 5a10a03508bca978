// 64-bit and 128-bit hashes (XXH3) for comparing contents. Not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace millrace {

/// Returns the 64-bit XXH3 hash of bytes; `seed` may be the hash of earlier bytes.
std::uint64_t digest(const void* bytes, std::size_t size, std::uint64_t seed = 0);

inline std::uint64_t digest(std::string_view bytes, std::uint64_t seed = 0) {
  return digest(bytes.data(), bytes.size(), seed);
}

template <class T>
requires std::is_trivially_copyable_v<T> std::uint64_t digest(const std::vector<T>& values,
                                                              std::uint64_t seed = 0) {
  return digest(values.data(), values.size() * sizeof(T), seed);
}

template <class T>
requires std::is_arithmetic_v<T> std::uint64_t digest(T value, std::uint64_t seed) {
  return digest(&value, sizeof(T), seed);
}

/// Returns the hash of the concatenated parts.
std::uint64_t digest_of_parts(std::span<const std::string_view> parts);

/// A 128-bit XXH3 hash, for cases in which a collision by chance must be excluded.
struct WideDigest {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const WideDigest&, const WideDigest&) = default;
};
WideDigest wide_digest(const void* bytes, std::size_t size);

/// Returns sixteen hexadecimal digits.
std::string hex(std::uint64_t value);

}  // namespace millrace
