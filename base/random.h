// Counter-based random numbers. They are pure functions of a key, so that results depend neither on
// threads nor on the order of work.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace millrace {

/// The splitmix64 finaliser: a bijection on 64-bit words with full avalanche.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// A stream of random numbers with a key of a few integers, such as (seed, epoch, index, stage).
/// Streams with different keys are independent; equal keys give equal numbers on every machine.
class Rng {
 public:
  using result_type = std::uint64_t;

  Rng(std::initializer_list<std::uint64_t> name) {
    for (const auto part : name) key_ = mix(key_ + kStep + part);
  }

  result_type operator()() { return mix(key_ + ++counter_ * kStep); }
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  /// Returns a number in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  /// Returns a number in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Returns an integer in [0, n). REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<Wide>((*this)()) * n) >> 64);
  }
  /// Returns an integer in [low, high], both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool chance(double probability) { return uniform() < probability; }
  /// Returns a normal number with mean 0 and deviation 1 (Box-Muller).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;
  std::uint64_t key_ = 0;
  std::uint64_t counter_ = 0;
};

/// A pseudo-random permutation of 0..size-1 that needs no memory: a Feistel network of hashes with
/// cycle walking (Black and Rogaway 2002). Any position is computed in O(1).
class Permutation {
 public:
  /// REQUIRES: size > 0.
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
      : size_(size), key_(mix(mix(seed) + epoch + 1)) {
    while ((std::uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  }

  std::uint64_t operator()(std::uint64_t position) const {
    do position = shuffle(position);
    while (position >= size_);
    return position;
  }

 private:
  std::uint64_t shuffle(std::uint64_t x) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (std::uint64_t round = 0; round < 8; ++round) {
      const std::uint64_t next = left ^ (mix(key_ + (round << 56) + right) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_ = 1;
};

}  // namespace millrace
