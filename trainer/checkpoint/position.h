// Where a run stands: what a checkpoint needs besides tensors.
#pragma once

#include <cstdint>

#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// The factor, and the search for it: halved where gradients overflow (that step is left out),
/// doubled after kPatience good steps in a row. Part of a checkpoint.
struct LossScale {
  static constexpr double kFirst = 65536, kLeast = 1, kMost = 16777216;
  static constexpr std::int64_t kPatience = 2000;

  double factor = kFirst;
  std::int64_t good_steps = 0;  // since it last changed

  /// After a step whose gradients were finite.
  void grow() {
    if (++good_steps < kPatience) return;
    good_steps = 0;
    if (factor < kMost) factor *= 2;
  }

  /// After one whose gradients were not. False: it cannot go lower, so that the scale is not to
  /// blame.
  bool shrink() {
    good_steps = 0;
    if (factor <= kLeast) return false;
    factor /= 2;
    return true;
  }
};

struct Position {
  std::int64_t step = 0;            // steps done
  double progress = 0;              // epochs of samples taken, over all ranks
  std::int64_t images = 0;          // seen by all ranks
  std::int64_t bad_steps = 0;       // skipped, since a loss or gradient was not finite
  std::int64_t overflow_steps = 0;  // skipped besides these, while fp16 looked for its loss scale
  std::int64_t bad_in_a_row = 0;    // bad steps since the last good one
  std::int64_t returns = 0;         // to earlier checkpoints, since training diverged
  double rate_factor = 1;           // of the learning rate, since these returns
  std::int64_t returned_to = 0;     // step of the checkpoint of the last return
  std::int64_t failing_step = 0;    // that it returned for; 0: training has passed it
  LossScale loss_scale;             // of fp16
  Cursor cursor;                    // of the data after the last step
};

}  // namespace millrace
