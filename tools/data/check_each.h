// Runs checks on all threads of the caller's arena.
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <cstddef>

#include "millrace/coco/data/findings.h"

namespace millrace::coco {

/// Calls `check(i, Findings&)` for each i below `count`. The order of `findings` is that of a
/// sequential loop.
template <typename F>
void check_each(std::size_t count, Findings& findings, const F& check) {
  using Range = tbb::blocked_range<std::size_t>;
  findings.append(tbb::parallel_reduce(
      Range(0, count), findings.none(),
      [&](const Range& range, Findings part) {
        for (std::size_t i = range.begin(); i < range.end(); ++i) check(i, part);
        return part;
      },
      [](Findings earlier, const Findings& later) {
        earlier.append(later);
        return earlier;
      }));
}

}  // namespace millrace::coco
