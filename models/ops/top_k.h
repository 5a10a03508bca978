// Finds the largest of many values in an order that depends on the values alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

/// Returns the indices of the `count` largest of the finite `values`, or of all if there are fewer:
/// largest first, equal values by index. Takes linear time. At most 2^32 values.
std::vector<std::int64_t> top_k(std::span<const float> values, std::int64_t count);

}  // namespace millrace
