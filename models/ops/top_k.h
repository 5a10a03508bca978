// The largest of many values, in an order that depends on nothing but the values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace {

/// Indices of the `count` largest of the finite `values`, or all if there are fewer: largest
/// first, equal ones by index. Linear in the number of values. At most 2^32 values.
std::vector<std::int64_t> top_k(std::span<const float> values, std::int64_t count);

}  // namespace millrace
