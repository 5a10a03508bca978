// Samples training regions from proposals, and computes detections, in one stage or a cascade (Cai
// and Vasconcelos 2018), in which each stage's boxes are the next one's regions and thresholds of
// overlap rise. Shapes: P proposals, K classes, S stages.
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

/// The regions of a batch's images that can be sampled.
struct Candidates {
  at::Tensor boxes;  // (N, P, 4)
  Matches matches;   // (N, P), indices into TruthPack; -1 also labels invalid regions
};

/// Labels boxes (N, P, 4) as foreground if their IoU with an object is >= `iou`, else as
/// background. `valid` (N, P) bool selects the boxes that count. `offset` as in match.
Candidates match_regions(const at::Tensor& boxes, const at::Tensor& valid,
                         const std::vector<Truth>& truths, double iou, double offset);

/// Returns the sampled candidates.
SampledRegions select_sampled(const Candidates& candidates, const SampledCandidates& samples);

class BoxStages {
 public:
  /// Declares its parameters under `scope`: box_head and box_predictor as in torchvision; in a
  /// cascade box_head.0, box_head.1 ... as in detectron2. `in`: channels of pooled regions; `first`
  /// as in BoxHead.
  BoxStages(const Scope& scope, const BoxStagesOptions& options, const BoxOptions& boxes,
            RegionPooler pool, std::int64_t in, std::int64_t classes, std::int64_t first);

  /// Returns the proposals of each image followed by its ground truth, matched for the first stage.
  Candidates candidates(const Proposals& proposals, const std::vector<Truth>& truths) const;

  /// Returns the task of sampling the first stage's regions.
  SamplingTask sampling_task(const Candidates& candidates, const StepInfo& step) const;

  /// Returns "loss_classifier" and "loss_box_reg" over the batch, in a cascade with the suffixes
  /// "_stage0", "_stage1" ...
  LossSums losses(const Features& features, SampledRegions regions,
                  const std::vector<Truth>& truths, const StepInfo& step) const;

  /// Returns the detections of each image from its proposals: the last stage's boxes with the mean
  /// of all stages' probabilities. Adds the detections before NMS to `features.intermediates`.
  std::vector<Found> detect(const Features& features, const std::vector<at::Tensor>& proposals,
                            const DetectionOptions& detection) const;

  /// Returns the detections that reach the score threshold, before NMS, from the probabilities (P,
  /// K) and the last stage's deltas of an image's proposals (P, 4).
  Found candidates(const at::Tensor& scores, const at::Tensor& deltas, const at::Tensor& proposals,
                   const DetectionOptions& detection) const;

  /// Adds the nodes of `detect`; `limits` (N, 4): width, height, width, height.
  FoundNodes detect(const std::vector<onnx::Value>& maps, const ProposalNodes& proposals,
                    const onnx::Value& limits, const DetectionOptions& detection) const;

  const BoxHead& head(std::size_t stage) const { return heads_[stage]; }

  /// Returns logits and deltas of a stage for rois (R, 5).
  BoxHead::Output output(const Features& features, const at::Tensor& rois, std::size_t stage,
                         const NormMode& mode) const;

  /// Returns the regions with their pooled features if the heads share these.
  SampledRegions with_shared(SampledRegions regions, const Features& features) const;

 private:
  /// Returns the next stage's regions: the boxes that `stage` predicts for its regions.
  SampledRegions refined(std::size_t stage, const at::Tensor& deltas, const SampledRegions& regions,
                         const std::vector<Truth>& truths) const;

  BoxStagesOptions options_;
  BoxOptions boxes_;
  RegionPooler pool_;
  std::vector<BoxHead> heads_;  // (S)
};

}  // namespace millrace
