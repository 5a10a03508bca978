// Where a run stands: what a checkpoint needs besides tensors.
#pragma once

#include <cstdint>

#include "millrace/engine/dataflow.h"
#include "millrace/trainer/optimizer/loss_scale.h"

namespace millrace {

struct Position {
  std::int64_t step = 0;            // steps done
  double progress = 0;              // epochs of samples taken, over all ranks
  std::int64_t images = 0;          // seen by all ranks
  std::int64_t bad_steps = 0;       // skipped, since a loss or gradient was not finite
  std::int64_t overflow_steps = 0;  // skipped besides these, while fp16 looked for its loss scale
  std::int64_t bad_in_a_row = 0;    // of the bad ones, the last ones without a good step between
  LossScale loss_scale;             // of fp16
  Cursor cursor;                    // of the data behind the last step
};

}  // namespace millrace
