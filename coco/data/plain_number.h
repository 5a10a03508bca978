// Parses numbers in JSON text, eight characters at a time.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace millrace::coco {

class PlainNumber {
 public:
  /// Reads a finite number, correctly rounded, and moves `at` past it. Returns false if there is
  /// none. REQUIRES: at least eight readable bytes after the text, which are not digits.
  [[gnu::always_inline]] static bool read(const char*& at, double& to) {
    const bool negative = *at == '-';
    at += negative;
    // Most numbers including the next character have up to eight characters: digits and at most one
    // point.
    const std::uint64_t next = eight(at), other = others(next);
    const std::uint64_t after_point = other & (other - 1);
    if (other == 0) return any_number(at, negative, to);
    const unsigned point = bytes_below(other);
    if (at[point] != '.') {
      if (point == 0 || (*at == '0' && point > 1)) return false;
      if ((at[point] | ' ') == 'e') return any_number(at, negative, to);
      at += point;
      const auto value = static_cast<double>(value_of(next, point));
      to = negative ? -value : value;
      return true;
    }
    if (after_point == 0) return any_number(at, negative, to);
    const unsigned count = bytes_below(after_point) - 1, decimals = count - point;
    if (point == 0 || decimals == 0 || (*at == '0' && point > 1)) return false;
    if ((at[count + 1] | ' ') == 'e') return any_number(at, negative, to);
    const std::uint64_t whole = (std::uint64_t{1} << (8 * point)) - 1;  // removes the point
    const auto value = value_of((next & whole) | (next >> 8 & ~whole), count);
    at += count + 1;
    to = rounded(value, decimals, negative);
    return true;
  }

 private:
  // Eight characters in one word, the first in the lowest byte.
  static constexpr std::uint64_t kOnes = 0x0101010101010101;
  static constexpr unsigned kBytes = 8;
  /// Returns the characters minus '0', so that digits are 0 to 9.
  static std::uint64_t eight(const char* at) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, kBytes);
    if constexpr (std::endian::native == std::endian::big) bytes = __builtin_bswap64(bytes);
    return bytes ^ (kOnes * '0');
  }
  /// Sets the highest bit of each byte that is not a digit.
  static std::uint64_t others(std::uint64_t eight) {
    return (((eight & (kOnes * 0x7f)) + kOnes * (0x80 - 10)) | eight) & (kOnes * 0x80);
  }
  /// Returns the number formed by the first 1 to 8 digits.
  static std::uint64_t value_of(std::uint64_t eight, unsigned digits) {
    // Zeros in front; then neighbours are combined to 2, 4 and 8 digits.
    eight <<= 8 * (kBytes - digits);
    eight = (eight * (10 << 8 | 1)) >> 8 & 0x00ff00ff00ff00ff;
    eight = (eight * (100 << 16 | 1)) >> 16 & 0x0000ffff0000ffff;
    return (eight * (10000ULL << 32 | 1)) >> 32;
  }
  static unsigned bytes_below(std::uint64_t highest_bits) {
    return static_cast<unsigned>(std::countr_zero(highest_bits)) / 8;
  }

  static constexpr std::uint64_t kTenTo[] = {1,      10,      100,      1000,     10000,
                                             100000, 1000000, 10000000, 100000000};
  /// Appends the digits at `at` to `value` and returns their number. For more than 19 digits the
  /// value is wrong.
  static std::size_t digits(const char*& at, std::uint64_t& value) {
    const char* begin = at;
    for (unsigned count = kBytes; count == kBytes; at += count) {
      const std::uint64_t next = eight(at);
      count = bytes_below(others(next));
      if (count > 0) value = value * kTenTo[count] + value_of(next, count);
    }
    return static_cast<std::size_t>(at - begin);
  }

  static constexpr double kPowers[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};

  static double rounded(std::uint64_t value, std::size_t decimals, bool negative) {
    // A single rounding, that of the quotient of two exact numbers.
    const double read = static_cast<double>(value) / kPowers[decimals];
    return negative ? -read : read;
  }
  static bool any_number(const char*& at, bool negative, double& to) {
    const char* const first = at;
    std::uint64_t value = 0;
    std::size_t count = digits(at, value), decimals = 0;
    if (count == 0 || (*first == '0' && count > 1)) return false;
    if (*at == '.') {
      decimals = digits(++at, value);
      if (decimals == 0) return false;
      count += decimals;
    }
    constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
    if (count > 19 || value > kExact || (*at | ' ') == 'e')
      return long_number(first, at, negative, to);
    to = rounded(value, decimals, negative);
    return true;
  }
  /// Reads a number with many digits, or with an exponent at `at`.
  [[gnu::noinline]] static bool long_number(const char* first, const char*& at, bool negative,
                                            double& to) {
    bool is_below_one = *first == '0';
    if ((*at | ' ') == 'e') {
      is_below_one = *++at == '-';
      at += *at == '-' || *at == '+';
      std::uint64_t exponent = 0;
      if (digits(at, exponent) == 0) return false;
    }
    const auto [end, fault] = std::from_chars(first - negative, at, to);
    if (fault == std::errc::result_out_of_range && is_below_one)
      to = negative ? -0.0 : 0.0;
    else if (fault != std::errc())
      return false;
    return end == at && std::isfinite(to);
  }
};

}  // namespace millrace::coco
