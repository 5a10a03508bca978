// The line of [callbacks.progress].
#pragma once

#include <cstdint>
#include <string>

#include "millrace/trainer/metrics.h"

namespace millrace {

struct ProgressFigures {
  double epoch = 0, epochs = 0;  // done, of so many
  std::int64_t step = 0, steps = 0;
  Scalars losses;  // their sum first
  Scalars scores;  // of the last evaluation, such as "mask AP"; shown on a terminal
  double lr = 0;
  double images_per_s = 0;
  double data_wait_share = 0;  // of the time, 0 .. 1
  double left_s = 0;
};

/// For a log: "epoch 2.27/12 step 345/1536  12:33 left  loss 0.812 (...)  12.3 images/s  data wait
/// 2%  lr 0.02".
std::string progress_line(const ProgressFigures& figures);

/// For a terminal: "epoch 2.27/12  [=====>    ]  12:33 left  loss 0.812  mask AP 0.431  12.3
/// images/s", and more where more fits into `columns`; what matters least is left out first, whole.
std::string progress_line(const ProgressFigures& figures, int columns);

}  // namespace millrace
