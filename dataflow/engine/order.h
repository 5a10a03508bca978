// The order of samples: an endless line of positions that all ranks share.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// The sample at a position. `name` sets its random numbers apart from those of other turns of the
/// epoch: the sample's own number, unless samples repeat.
struct Turn {
  std::int64_t sample = 0;
  std::uint64_t name = 0;
};

/// Position p = epoch * size + place. An epoch is a permutation of the samples, another one each
/// time if shuffling. A pure function of its arguments; any position is looked up in O(1), with
/// repeats in O(log samples). Thread-safe.
///
/// `repeats[i]`, if given, is how often sample i comes per epoch, on average: an epoch then has
/// round(sum) places, and sample i comes as often as the whole number below or above its share,
/// drawn per epoch (systematic sampling, Madow 1944).
class Order {
 public:
  /// REQUIRES: samples > 0; `repeats` empty or one finite number >= 0 per sample, their sum >= 1.
  Order(std::int64_t samples, std::vector<double> repeats, std::uint64_t seed, Shuffle shuffle);

  /// Places of an epoch.
  std::int64_t size() const { return size_; }
  std::int64_t epoch(std::int64_t position) const { return position / size_; }

  /// The turn at a position, or `ahead` places later, cyclically within the epoch.
  Turn turn(std::int64_t position, std::int64_t ahead = 0) const;
  /// The sample at a place of an epoch before shuffling.
  std::int64_t sample(std::int64_t place, std::int64_t epoch) const;

 private:
  std::int64_t shuffled(std::int64_t place, std::int64_t epoch) const;

  std::vector<double> upto_;  // of repeats: the sum up to and with each sample
  std::int64_t size_;
  std::uint64_t seed_;
  Shuffle shuffle_;
};

}  // namespace millrace
