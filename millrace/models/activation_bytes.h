// An estimate of what a step of a pyramid detector keeps in memory between its forward and its
// backward pass.
#pragma once

#include "millrace/weights/parameters.h"

namespace millrace {

/// Regions of the heads of the second stage, over all images of a batch, and the cells of each.
struct RegionLoad {
  double boxes = 0, box_cells = 0;   // e.g. 512 per image, 7 x 7
  double masks = 0, mask_cells = 0;  // at most; e.g. 128 per image, 14 x 14
};

/// Bytes of activations for a batch of `pixels` (images x padded height x width), from the shapes
/// and names of the model's tensors: each convolution that is trained keeps its output at its
/// stride, kKeptPerLayer times over. `finest`: log2 of the stride of the pyramid's finest map.
double activation_bytes(const Parameters& parameters, double pixels, int finest,
                        const RegionLoad& regions = {});

}  // namespace millrace
