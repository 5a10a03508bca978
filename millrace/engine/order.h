// Which sample comes when: the endless line of positions that all ranks share.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/engine/dataflow.h"

namespace millrace {

/// What comes at a position. `name` tells its random numbers from those of other turns in the same
/// epoch: the sample's own number, unless samples repeat.
struct Turn {
  std::int64_t sample = 0;
  std::uint64_t name = 0;
};

/// Position p = epoch * size + place. Within an epoch each place holds another sample; where
/// shuffling, another permutation each epoch. A pure function of its arguments, so that any
/// position can be looked up from any thread: O(1), with repeats O(log samples).
///
/// `repeats[i]`, where given, is how often sample i comes in an epoch, on average: an epoch then
/// has round(sum) places, and sample i takes the whole numbers below or above its share, by a draw
/// an epoch (systematic sampling, Madow 1944). That is weighted mixing and, with its factors,
/// LVIS's repeat-factor sampling.
class Order {
 public:
  /// REQUIRES: samples > 0; `repeats` empty or one finite number >= 0 a sample, their sum >= 1.
  Order(std::int64_t samples, std::vector<double> repeats, std::uint64_t seed, Shuffle shuffle);

  /// Places of an epoch.
  std::int64_t size() const { return size_; }
  std::int64_t epoch(std::int64_t position) const { return position / size_; }

  /// The turn at a position; `ahead` > 0: the one so many places later, round within the epoch.
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
