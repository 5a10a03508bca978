// From proposals to the regions that are trained on, and to detections.
// Shapes: P proposals, K classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/box_options.h"
#include "models/maskrcnn/box_head.h"
#include "models/maskrcnn/regions.h"
#include "models/pyramid_detector.h"

namespace millrace {

struct BoxStagesOptions {
  double iou = 0.5;
  std::int64_t batch = 512;
  double positive = 0.25;
  std::vector<double> weights = {10, 10, 5, 5};
  BoxHeadOptions head;

  void describe(Options& o);
  void use_torchvision() { head.use_torchvision(); }
};

class BoxStages {
 public:
  /// Declares its tensors under `scope`; `in` are the pyramid's channels, `first` as in BoxHead.
  BoxStages(const Scope& scope, const BoxStagesOptions& options, const BoxOptions& boxes,
            const PoolOptions& pool, std::int64_t in, std::int64_t classes, std::int64_t first);

  /// Proposals (P, 4) and the ground truth behind them, matched.
  Candidates candidates(const at::Tensor& proposals, const Truth& truth) const;

  /// Of the candidates of image `image`.
  Samples draw(const Candidates& candidates, const StepInfo& step, std::size_t image) const;

  /// "box_class" and "box_regression" over the batch.
  Losses losses(const Features& features, const std::vector<SampledRegions>& regions,
                const std::vector<Truth>& truths) const;

  /// Detections of each image from its proposals.
  std::vector<Found> detect(const Features& features, const std::vector<at::Tensor>& proposals,
                            const DetectionOptions& detection) const;

  /// Detections of one image from what the head says of its proposals (P, 4).
  Found detect(const BoxHead::Output& output, const at::Tensor& proposals, const ImageSize& size,
               const DetectionOptions& detection) const;

  /// Classes and deltas of rois (R, 5).
  BoxHead::Output operator()(const Features& features, const at::Tensor& rois) const;

 private:
  BoxStagesOptions options_;
  BoxOptions boxes_;
  PoolOptions pool_;
  BoxHead head_;
};

}  // namespace millrace
