// The second stage (Girshick 2015): classifies regions and refines their boxes.
// Shapes: R regions, K classes, B = K (+ 1 where the background comes first) groups of box deltas.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/layers.h"
#include "models/maskrcnn/options.h"
#include "models/maskrcnn/rpn.h"

namespace millrace {

/// Regions drawn for training from one image: R of them, foreground first.
struct SampledRegions {
  at::Tensor boxes;             // (R, 4)
  at::Tensor truth;             // (F) int64: ground truth of each foreground region
  std::int64_t foreground = 0;  // F
};

class BoxHead {
 public:
  BoxHead() = default;
  BoxHead(const Scope& scope, const MaskRcnnOptions& options, std::int64_t classes);

  /// Ground truth joins the proposals (P, 4); then regions are matched and sampled.
  SampledRegions sample_regions(const at::Tensor& proposals, const Truth& truth,
                                const StepInfo& step, std::size_t image) const;

  /// "box_class" and "box_regression" over the batch.
  Losses losses(const std::vector<at::Tensor>& features, const std::vector<SampledRegions>& regions,
                const std::vector<Truth>& truths) const;

  struct Found {
    at::Tensor boxes;   // (D, 4) network pixels, best first
    at::Tensor scores;  // (D)
    at::Tensor labels;  // (D) int64, 0 .. K-1
  };
  /// Detections of each image from its proposals; `sizes` are true (height, width).
  std::vector<Found> detect(const std::vector<at::Tensor>& features,
                            const std::vector<at::Tensor>& proposals,
                            const std::vector<std::pair<double, double>>& sizes) const;

 private:
  struct Output {
    at::Tensor logits;  // (R, K + 1)
    at::Tensor deltas;  // (R, B, 4)
  };
  Output operator()(const std::vector<at::Tensor>& features, const at::Tensor& rois) const;
  std::int64_t background() const { return first_ ? 0 : classes_; }

  MaskRcnnOptions options_;
  std::int64_t classes_ = 0;
  std::int64_t first_ = 0;  // 1: the background comes first, classes are shifted by one
  Linear fc6_, fc7_, logits_, deltas_;
};

}  // namespace millrace
