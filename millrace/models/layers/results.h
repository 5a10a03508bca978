// What a detector found, from the network's pixels into those of the original images.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/layers/objects.h"
#include "millrace/trainer/detector/detector.h"

namespace millrace {

/// Boxes scaled and cut to the original images; masks (D over all images, M, M), probabilities,
/// pasted by the rule `paste` (see paste_mask). An undefined `masks` gives objects without.
std::vector<std::vector<DetectedObject>> in_original_pixels(const Batch& batch,
                                                            const std::vector<Found>& found,
                                                            const at::Tensor& masks,
                                                            const std::string& paste);

}  // namespace millrace
