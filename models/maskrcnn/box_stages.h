// From proposals to the regions that are trained on, and to detections, in one stage or a cascade
// (Cai and Vasconcelos 2018): each stage's boxes are the next one's regions, which must overlap
// objects more. Shapes: P proposals, K classes, S stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/maskrcnn/box_head.h"
#include "millrace/models/maskrcnn/regions.h"
#include "millrace/models/maskrcnn/rpn.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/sampling.h"
#include "millrace/models/pyramid_detector.h"

namespace millrace {

struct BoxStagesOptions {
  std::vector<double> fg_iou_thresh = {0.5};  // (S)
  std::int64_t batch_size_per_image = 512;
  double positive_fraction = 0.25;
  std::vector<double> bbox_reg_weights = {10, 10, 5, 5};  // (4 S)
  BoxHeadOptions head;

  void describe(Options& o);
  void check(const Config& table, const Options& defaults) const;
};

/// The regions of a batch's images that may be drawn from.
struct Candidates {
  at::Tensor boxes;  // (N, P, 4)
  Matches matches;   // (N, P), indices are those of TruthPack; -1 labels what is no region, too
};

/// Boxes (N, P, 4) whose IoU with an object is >= `iou` are foreground, the others background;
/// those of `valid` (N, P) bool count. `offset` as in match.
Candidates match_regions(const at::Tensor& boxes, const at::Tensor& valid,
                         const std::vector<Truth>& truths, double iou, double offset);

/// The candidates that were drawn.
SampledRegions take(const Candidates& candidates, const Drawn& drawn);

class BoxStages {
 public:
  /// Declares its tensors under `scope`: box_head and box_predictor as in torchvision, in a cascade
  /// box_head.0, box_head.1 ... as in detectron2. `in` are the channels of what is pooled, `first`
  /// as in BoxHead.
  BoxStages(const Scope& scope, const BoxStagesOptions& options, const BoxOptions& boxes,
            RegionPooler pool, std::int64_t in, std::int64_t classes, std::int64_t first);

  /// The proposals of each image followed by its ground truth, matched for the first stage.
  Candidates candidates(const Proposals& proposals, const std::vector<Truth>& truths) const;

  /// The candidates to draw the first stage's regions from.
  Lot lot(const Candidates& candidates, const StepInfo& step) const;

  /// "loss_classifier" and "loss_box_reg" over the batch, in a cascade followed by "_stage0",
  /// "_stage1" ...
  LossSums losses(const Features& features, SampledRegions regions,
                  const std::vector<Truth>& truths, const StepInfo& step) const;

  /// Detections of each image from its proposals: the last stage's boxes, the mean of all stages'
  /// probabilities. Adds to `features.noted` what there is before NMS.
  std::vector<Found> detect(const Features& features, const std::vector<at::Tensor>& proposals,
                            const DetectionOptions& detection) const;

  /// What reaches the score threshold, before NMS, from the probabilities (P, K) and the last
  /// stage's deltas of an image's proposals (P, 4).
  Found candidates(const at::Tensor& scores, const at::Tensor& deltas, const at::Tensor& proposals,
                   const DetectionOptions& detection) const;

  /// Detections in a graph; `limits` (N, 4): width, height, width, height.
  FoundNodes detect(const std::vector<onnx::Value>& maps, const ProposalNodes& proposals,
                    const onnx::Value& limits, const DetectionOptions& detection) const;

  const BoxHead& head(std::size_t stage) const { return heads_[stage]; }

  /// Classes and deltas of a stage for rois (R, 5).
  BoxHead::Output output(const Features& features, const at::Tensor& rois, std::size_t stage,
                         const NormPass& pass) const;

  /// The regions with the features that heads share, if they do.
  SampledRegions with_shared(SampledRegions regions, const Features& features) const;

 private:
  /// The regions that a stage makes of those it has seen.
  SampledRegions refined(std::size_t stage, const at::Tensor& deltas, const SampledRegions& regions,
                         const std::vector<Truth>& truths) const;

  BoxStagesOptions options_;
  BoxOptions boxes_;
  RegionPooler pool_;
  std::vector<BoxHead> heads_;  // (S)
};

}  // namespace millrace
