// Position of a run: the state of a checkpoint besides tensors.
#pragma once

#include <cstdint>

#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// Loss scale of fp16 and the search for it: halved when gradients overflow (that step is skipped),
/// doubled after kGrowthInterval good steps in a row. Part of a checkpoint.
struct LossScale {
  static constexpr double kInitial = 65536, kMin = 1, kMax = 16777216;
  static constexpr std::int64_t kGrowthInterval = 2000;

  double factor = kInitial;
  std::int64_t good_steps = 0;  // good steps since the last change of `factor`

  /// Call after a step whose gradients were finite.
  void grow() {
    if (++good_steps < kGrowthInterval) return;
    good_steps = 0;
    if (factor < kMax) factor *= 2;
  }

  /// Call after a step whose gradients were not finite. Returns false if the scale is at its
  /// minimum, so that the scale is not the cause.
  bool shrink() {
    good_steps = 0;
    if (factor <= kMin) return false;
    factor /= 2;
    return true;
  }
};

struct Position {
  std::int64_t step = 0;       // steps done
  double progress = 0;         // epochs of samples taken by all ranks
  std::int64_t images = 0;     // images processed by all ranks
  std::int64_t bad_steps = 0;  // steps skipped because a loss or gradient was not finite
  // Steps skipped while fp16 adapted its loss scale; not in bad_steps.
  std::int64_t overflow_steps = 0;
  std::int64_t bad_in_a_row = 0;  // bad steps since the last good one
  std::int64_t returns = 0;       // returns to earlier checkpoints after divergence
  double rate_factor = 1;         // factor of the learning rate after these returns
  std::int64_t returned_to = 0;   // step of the checkpoint of the last return
  std::int64_t failing_step = 0;  // step that caused the return; 0 = training has passed it
  LossScale loss_scale;           // loss scale of fp16
  Cursor cursor;                  // position in the data after the last step
};

}  // namespace millrace
