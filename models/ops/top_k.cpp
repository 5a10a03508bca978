#include "millrace/models/ops/top_k.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "millrace/models/ops/cpu/simd.h"

namespace millrace {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kLargest = std::numeric_limits<float>::max();

/// Returns an integer that orders values; of equal values the lower index has the greater key.
std::uint64_t key_of(float value, std::size_t index) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);  // turns -0 into 0
  const auto ordered = bits >> 31 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{ordered} << 32 | static_cast<std::uint32_t>(~index);
}

std::int64_t index_of(std::uint64_t key) {
  return static_cast<std::int64_t>(~static_cast<std::uint32_t>(key));
}

MILLRACE_SIMD bool any_from(const float* values, std::size_t count, float limit) {
  int found = 0;
  for (std::size_t i = 0; i < count; ++i)
    found |= static_cast<int>(values[i] >= limit) & static_cast<int>(values[i] <= kLargest);
  return found;
}

/// Returns the keys of the finite values that are at least `limit`.
std::vector<std::uint64_t> keys_from(std::span<const float> values, float limit) {
  constexpr std::size_t kBlock = 64;  // values skipped together, as most are too small
  std::vector<std::uint64_t> keys;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto end = std::min(begin + kBlock, values.size());
    if (!any_from(values.data() + begin, end - begin, limit)) continue;
    for (auto i = begin; i < end; ++i)
      if (values[i] >= limit && values[i] <= kLargest) keys.push_back(key_of(values[i], i));
  }
  return keys;
}

/// Returns a limit, estimated from a sample, that somewhat more than `count` values reach.
float likely_limit(std::span<const float> values, std::size_t count) {
  constexpr std::size_t kStep = 16;
  const auto rank = count / kStep + count / (2 * kStep) + 16;
  if (values.size() / kStep <= 2 * rank) return kLowest;  // too few values for a sample to pay
  std::vector<float> sample;
  for (std::size_t i = 0; i < values.size(); i += kStep)
    sample.push_back(values[i] >= kLowest && values[i] <= kLargest ? values[i] : kLowest);
  const auto place = sample.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(sample.begin(), place, sample.end(), std::greater<>());
  return *place;
}

}  // namespace

std::vector<std::int64_t> top_k(std::span<const float> values, std::int64_t count) {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  const auto limit = likely_limit(values, wanted);
  auto keys = keys_from(values, limit);
  if (keys.size() < wanted && limit > kLowest) keys = keys_from(values, kLowest);
  if (keys.size() > wanted) {
    std::nth_element(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(wanted), keys.end(),
                     std::greater<>());
    keys.resize(wanted);
  }
  std::sort(keys.begin(), keys.end(), std::greater<>());
  std::vector<std::int64_t> result(keys.size());
  std::transform(keys.begin(), keys.end(), result.begin(), index_of);
  return result;
}

}  // namespace millrace
