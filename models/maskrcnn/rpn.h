// Region proposal network (Ren et al. 2015) on a feature pyramid.
// Shapes: N images, L levels, A anchors a cell, T anchors in all, H_l x W_l cells.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "models/layers/layers.h"
#include "models/layers/matcher.h"
#include "models/maskrcnn/options.h"
#include "trainer/detector.h"

namespace millrace {

/// What the losses need of one image's ground truth; crowd regions are not part of it.
struct Truth {
  at::Tensor boxes;                                      // (G, 4) network pixels
  at::Tensor labels;                                     // (G) int64, 0 .. classes - 1
  std::vector<const coco::Segmentation*> segmentations;  // (G) borrowed from the batch
  double height = 0, width = 0;                          // true size of the image, network pixels
};

class Rpn {
 public:
  struct Output {
    at::Tensor logits;                       // (N, T)
    at::Tensor deltas;                       // (N, T, 4)
    at::Tensor anchors;                      // (T, 4), order: level, y, x, cell
    std::vector<std::int64_t> level_counts;  // (L) anchors of each level
  };

  Rpn() = default;
  Rpn(const Scope& scope, const MaskRcnnOptions& options);

  /// `padded` is the batch's (height, width).
  Output operator()(const std::vector<at::Tensor>& features,
                    std::pair<std::int64_t, std::int64_t> padded) const;

  /// Proposals of each image, (P, 4), best first; `sizes` are true (height, width). Not differentiable.
  std::vector<at::Tensor> proposals(const Output& output,
                                    const std::vector<std::pair<double, double>>& sizes,
                                    bool training) const;

  /// "rpn_objectness" and "rpn_box" over the batch.
  Losses losses(const Output& output, const std::vector<Truth>& truths, const StepInfo& step) const;

 private:
  MaskRcnnOptions options_;
  Conv2d conv_, logits_, deltas_;
};

}  // namespace millrace
