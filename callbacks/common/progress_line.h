// Formats the line of [callbacks.progress].
#pragma once

#include <cstdint>
#include <string>

#include "millrace/trainer/metrics.h"

namespace millrace {

struct ProgressMetrics {
  double epoch = 0, epochs = 0;  // epochs done, and their total
  std::int64_t step = 0, steps = 0;
  Scalars losses;  // losses, their sum first
  Scalars scores;  // scores of the last evaluation, e.g. "mask AP"; only shown on a terminal
  double lr = 0;
  double images_per_s = 0;
  double data_wait_share = 0;  // share of the time spent waiting for data, 0 to 1
  double left_s = 0;
};

/// Returns the line for a log: "epoch 2.27/12 step 345/1536  12:33 left  loss 0.812 (...)  12.3
/// images/s  data wait 2%  lr 0.02".
std::string progress_line(const ProgressMetrics& metrics);

/// Returns the line for a terminal: "epoch 2.27/12  [=====>    ]  12:33 left  loss 0.812  mask AP
/// 0.431  12.3 images/s", with more items if they fit into `columns`. The least important items are
/// omitted first.
std::string progress_line(const ProgressMetrics& metrics, int columns);

}  // namespace millrace
