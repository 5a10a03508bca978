// Region proposals from the outputs of an RPN: the images and levels of a batch at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/models/ops/boxes.h"

namespace millrace {

struct ProposalOptions {
  std::int64_t before = 1000;  // boxes of a level that are decoded: those of the highest logits
  std::int64_t after = 1000;   // boxes of an image that are kept, of all levels
  double threshold = 0.7;      // IoU: what overlaps a better box of its level more goes
  double min_side = 0;         // pixels: boxes with a shorter side go; 0: those without area
  bool by_probability =
      false;  // boxes are ranked by sigmoid: logits that round to the same one are tied
  BoxCoder coder;
};

/// logits (N, T), deltas (N, T, 4) and anchors (T, 4), level after level, of which `level_counts` (L) says how many each
/// has; `sizes` (N): true (height, width) of the images. Gives the boxes of each image, (P, 4) float, best first.
/// Per level: the best logits, decoded, cut to the image, freed of small boxes and of those not finite, NMS; then the
/// best of all levels. Ties go to the lower level, then the lower index; the result depends on no number of threads.
/// Not differentiable. Throws std::invalid_argument for shapes that do not fit.
std::vector<at::Tensor> proposals(const at::Tensor& logits, const at::Tensor& deltas,
                                  const at::Tensor& anchors,
                                  const std::vector<std::int64_t>& level_counts,
                                  const std::vector<std::pair<double, double>>& sizes,
                                  const ProposalOptions& options);

}  // namespace millrace
