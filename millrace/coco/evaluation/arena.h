// The threads that an evaluation may take.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>

namespace millrace::coco {

/// Runs `body` on so many of the process's threads; 0: all of them.
template <class Body>
auto in_arena(int threads, const Body& body) {
  const int allowed = static_cast<int>(
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  tbb::task_arena arena(threads > 0 ? std::min(threads, allowed) : allowed);
  return arena.execute(body);
}

}  // namespace millrace::coco
