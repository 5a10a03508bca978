#include "millrace/dataflow/engine/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "millrace/base/random.h"

namespace millrace {
namespace {

constexpr std::uint64_t kRepeats = 0x5245'5045'4154;  // Rng stream of an epoch's repeats

std::int64_t permuted(std::int64_t place, std::int64_t size, std::uint64_t seed,
                      std::int64_t epoch) {
  const Permutation permutation(static_cast<std::uint64_t>(size), seed,
                                static_cast<std::uint64_t>(epoch));
  return static_cast<std::int64_t>(permutation(static_cast<std::uint64_t>(place)));
}

std::vector<double> sums(std::vector<double> values) {
  std::partial_sum(values.begin(), values.end(), values.begin());
  return values;
}

}  // namespace

Order::Order(std::int64_t samples, std::vector<double> repeats, std::uint64_t seed, Shuffle shuffle)
    : cumulative_repeats_(sums(std::move(repeats))),
      size_(cumulative_repeats_.empty() ? samples : std::llround(cumulative_repeats_.back())),
      seed_(seed),
      shuffle_(shuffle) {}

Turn Order::turn(std::int64_t position, std::int64_t ahead) const {
  const auto now = epoch(position);
  const auto place = shuffled((position + ahead) % size_, now);
  return {sample(place, now), static_cast<std::uint64_t>(place)};
}

std::int64_t Order::sample(std::int64_t place, std::int64_t epoch) const {
  if (cumulative_repeats_.empty()) return place;
  const double start = Rng{seed_, static_cast<std::uint64_t>(epoch), kRepeats}.uniform();
  const double at = (static_cast<double>(place) + start) * cumulative_repeats_.back() /
                    static_cast<double>(size_);
  const auto found =
      std::ranges::upper_bound(cumulative_repeats_, at) - cumulative_repeats_.begin();
  return std::min<std::int64_t>(found, std::ssize(cumulative_repeats_) - 1);
}

std::int64_t Order::shuffled(std::int64_t place, std::int64_t epoch) const {
  if (!shuffle_.on) return place;
  const auto window = shuffle_.window;
  if (window <= 0) return permuted(place, size_, seed_, epoch);
  // Whole windows are permuted; an incomplete last window stays last.
  auto number = place / window;
  const auto inside = place % window;
  if (const auto whole = size_ / window; number < whole)
    number = permuted(number, whole, seed_, epoch);
  const auto begin = number * window;
  const auto length = std::min(window, size_ - begin);
  return begin + permuted(inside, length, mix(seed_ + static_cast<std::uint64_t>(number)), epoch);
}

}  // namespace millrace
