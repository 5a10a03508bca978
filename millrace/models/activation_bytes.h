// An estimate of what a step of a pyramid detector keeps in memory between its forward and its
// backward pass.
#pragma once

#include "millrace/models/pyramid_detector.h"

namespace millrace {

/// Bytes of activations for a batch of `pixels` (images x padded height x width), from the shapes
/// and names of the model's tensors: each convolution that is trained keeps its output at its
/// stride, kKeptPerLayer times over. `finest`: log2 of the stride of the pyramid's finest map.
double activation_bytes(const Parameters& parameters, double pixels, int finest,
                        const RegionLoad& regions = {});

}  // namespace millrace
