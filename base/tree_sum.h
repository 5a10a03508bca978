// Summation in the order of one balanced binary tree.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace millrace {

/// Returns leaf(first) + ... + leaf(first + count - 1), summed as a balanced tree: the sum of the
/// first half (the larger one if `count` is odd) plus the sum of the second. The sums of 2^k equal
/// blocks of neighbours, added by another tree_sum, are therefore bitwise equal to the sum of all,
/// wherever each block was summed. REQUIRES: count > 0.
template <class Leaf, class Add = std::plus<>>
auto tree_sum(std::size_t count, const Leaf& leaf, const Add& add = {}, std::size_t first = 0)
    -> decltype(leaf(first)) {
  if (count == 1) return leaf(first);
  const auto lower = (count + 1) / 2;
  auto sum = tree_sum(lower, leaf, add, first);
  return add(std::move(sum), tree_sum(count - lower, leaf, add, first + lower));
}

}  // namespace millrace
