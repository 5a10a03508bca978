// The order of samples: an endless sequence of positions that all ranks share.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// The sample at a position. `random_stream` separates its random numbers from those of other turns
/// of the epoch: it is the sample's own number, unless samples repeat.
struct Turn {
  std::int64_t sample = 0;
  std::uint64_t random_stream = 0;
};

/// Maps position p = epoch * size + place to a sample. An epoch is a permutation of the samples, a
/// new one each time if shuffling is on. A pure function of its arguments; a lookup takes O(1), or
/// O(log samples) with repeats. Thread-safe.
///
/// `repeats[i]`, if given, is the average number of times per epoch that sample i is taken. An
/// epoch then has round(sum) places, and the count of sample i is its repeats rounded down or up,
/// drawn per epoch (systematic sampling, Madow 1944).
class Order {
 public:
  /// REQUIRES: samples > 0; `repeats` empty or one finite number >= 0 per sample, their sum >= 1.
  Order(std::int64_t samples, std::vector<double> repeats, std::uint64_t seed, Shuffle shuffle);

  /// Returns the number of places in an epoch.
  std::int64_t size() const { return size_; }
  std::int64_t epoch(std::int64_t position) const { return position / size_; }

  /// Returns the turn at a position, or `ahead` places later, cyclically within the epoch.
  Turn turn(std::int64_t position, std::int64_t ahead = 0) const;
  /// Returns the sample at a place of an epoch before shuffling.
  std::int64_t sample(std::int64_t place, std::int64_t epoch) const;

 private:
  std::int64_t shuffled(std::int64_t place, std::int64_t epoch) const;

  // Running sum of repeats, up to and including each sample.
  std::vector<double> cumulative_repeats_;
  std::int64_t size_;
  std::uint64_t seed_;
  Shuffle shuffle_;
};

}  // namespace millrace
