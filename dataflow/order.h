// Which sample comes when: the endless line of positions that all ranks share.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace millrace {

/// Position p = epoch * size + place. Within an epoch each place holds another sample; where
/// shuffling, another permutation each epoch. A pure function of (size, seed), so that any position
/// can be looked up in O(1) from any thread.
class Order {
 public:
  /// REQUIRES: size > 0.
  Order(std::int64_t size, std::uint64_t seed, bool shuffle)
      : size_(size), seed_(seed), shuffle_(shuffle) {}

  std::int64_t size() const { return size_; }
  std::int64_t epoch(std::int64_t position) const { return position / size_; }

  /// The sample at a position; `ahead` > 0: the one so many places later, round within the epoch.
  std::int64_t index(std::int64_t position, std::int64_t ahead = 0) const {
    const auto place = static_cast<std::uint64_t>((position + ahead) % size_);
    if (!shuffle_) return static_cast<std::int64_t>(place);
    const Permutation permutation(static_cast<std::uint64_t>(size_), seed_,
                                  static_cast<std::uint64_t>(epoch(position)));
    return static_cast<std::int64_t>(permutation(place));
  }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace millrace
