// Region proposal network (Ren et al. 2015) on a feature pyramid. Shapes: N images, L levels, A
// anchors per cell, T anchors in all, H_l x W_l cells.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/models/layers/anchors.h"
#include "millrace/models/layers/layers.h"
#include "millrace/models/maskrcnn/regions.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/sampling.h"
#include "millrace/models/pyramid_detector.h"

namespace millrace {

struct RpnOptions {
  /// The divisor of the losses: batch_size_per_image x images, or the number of sampled anchors.
  enum class Normalizer { batch, sampled };
  friend std::vector<std::string> value_names(Normalizer) { return {"batch", "sampled"}; }

  /// The score by which NMS ranks proposals.
  enum class RankBy { logit, probability };
  friend std::vector<std::string> value_names(RankBy) { return {"logit", "probability"}; }

  PyramidAnchors anchors;
  double boundary_thresh = -1;
  double fg_iou_thresh = 0.7, bg_iou_thresh = 0.3;
  std::int64_t batch_size_per_image = 256;
  double positive_fraction = 0.5;
  double smooth_l1_beta = 0;
  Normalizer loss_normalizer = Normalizer::batch;
  std::int64_t pre_nms_top_n_train = 2000, pre_nms_top_n_test = 1000;
  std::int64_t post_nms_top_n_train = 1000, post_nms_top_n_test = 1000;
  double nms_thresh = 0.7;
  RankBy rank_by = RankBy::logit;
  double min_size = 0;

  void describe(Options& o);
  void check(const Config& table) const;
};

/// Proposals of N images in a graph, with the slot of each in a table of N rows.
struct ProposalNodes {
  RegionNodes regions;
  onnx::Value places;  // (P, 2) int64
  onnx::Value table;   // sides of the table: N and the maximum per image
};

class Rpn {
 public:
  struct Output {
    at::Tensor logits;                       // (N, T)
    at::Tensor deltas;                       // (N, T, 4)
    at::Tensor anchors;                      // (T, 4), by level, y, x, cell
    std::vector<std::int64_t> level_counts;  // (L) number of anchors of each level
  };

  /// Declares its parameters under `scope` for maps of `channels`, the first with this stride.
  Rpn(const Scope& scope, const RpnOptions& options, const BoxOptions& boxes, std::int64_t channels,
      std::int64_t first_stride = 4);

  /// Returns predictions for all anchors; on a CPU without gradients, see `sampled_predictions`.
  Output operator()(const Features& features) const;

  Proposals proposals(const Output& output, const std::vector<ImageSize>& sizes,
                      bool training) const;

  /// Adds the nodes of inference for maps, `padded` (height, width) and the images' `limits` (N,
  /// 4): width, height, width, height.
  ProposalNodes proposals(const std::vector<onnx::Value>& maps, const onnx::Value& padded,
                          const onnx::Value& limits) const;

  /// Returns the ground truth of each anchor (T, 4) in each image, (N, T); indices are those of
  /// TruthPack.
  Matches match_anchors(const at::Tensor& anchors, const std::vector<Truth>& truths) const;

  /// Returns the task of sampling anchors.
  SamplingTask sampling_task(const Matches& matches, const StepInfo& step) const;

  /// Returns "loss_objectness" and "loss_rpn_box_reg" over the sampled anchors.
  LossSums losses(const Features& features, const Output& output, const std::vector<Truth>& truths,
                  const Matches& matches, const SampledCandidates& samples,
                  const StepInfo& step) const;

 private:
  struct Predicted {
    at::Tensor logits;  // (R) of the sampled anchors
    at::Tensor deltas;  // (F, 4) of the foreground ones
  };
  /// Returns the predictions of the sampled anchors, with gradients. On a GPU they are selected
  /// from the output of all anchors. On a CPU they are predicted a second time, from the 3 x 3
  /// pixels around each: other anchors have no gradient, so hidden maps are neither kept nor part
  /// of the backward pass (decision 0012).
  Predicted sampled_predictions(const Features& features, const Output& output,
                                const SampledCandidates& samples) const;

  RpnOptions options_;
  BoxCoder coder_;
  AnchorGrids anchors_;
  Conv2d conv_, logits_, deltas_;
};

/// Adds "rpn/recall50" and "rpn/recall70": the shares of objects with a proposal (P, 4) of their
/// image whose IoU is at least 0.5 and 0.7. Empty boxes do not count as proposals.
void add_recall(const std::vector<at::Tensor>& proposals, const std::vector<Truth>& truths,
                Metrics& metrics);

}  // namespace millrace
