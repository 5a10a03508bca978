// The memory that a pass of a detector on a feature pyramid takes, from the names and shapes of its
// tensors.
#pragma once

#include "millrace/models/pyramid_detector.h"
#include "millrace/models/weights/parameters.h"

namespace millrace {

struct PassLoad {
  double pixels = 0;  // of the batch, padded
  int finest = 2;     // log2 of the stride of the pyramid's finest map; 4: of the only map, C4
  RegionLoad regions;
  bool folds_norm = true;  // the backbone's norms become part of its convolutions
  double value_bytes = 4;  // of a convolution's output
  bool trains = true;      // keeps what the backward pass needs
};

/// At its peak, besides the batch and its pixels, weights, their gradients and the optimizer's
/// state. Heads of one stage count as on every level.
double pass_bytes(const Parameters& parameters, const PassLoad& load);

}  // namespace millrace
