// A sample that a flow could not use.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

/// Epoch and place tell each turn of a sample from all others (see Turn::name), so that one which
/// is met again, in place of another, counts once.
struct SkippedSample {
  std::int64_t epoch = 0;
  std::uint64_t place = 0;
  std::int64_t sample = 0;  // its number in the source
  std::string why;
};

}  // namespace millrace
