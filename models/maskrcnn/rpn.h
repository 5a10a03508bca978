// Region proposal network (Ren et al. 2015) on a feature pyramid.
// Shapes: N images, L levels, A anchors per cell, T anchors in all, H_l x W_l cells.
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
  /// The divisor of the losses: batch_size_per_image x images, or the sampled anchors.
  enum class Normalizer { batch, sampled };
  friend std::vector<std::string> value_names(Normalizer) { return {"batch", "sampled"}; }

  /// What NMS ranks proposals by.
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

/// Proposals of N images in a graph, and where each has its place in a table of N rows.
struct ProposalNodes {
  RegionNodes regions;
  onnx::Value places;  // (P, 2) int64
  onnx::Value table;   // a list of its two sides: N, and as many as an image may have
};

class Rpn {
 public:
  struct Output {
    at::Tensor logits;                       // (N, T)
    at::Tensor deltas;                       // (N, T, 4)
    at::Tensor anchors;                      // (T, 4), order: level, y, x, cell
    std::vector<std::int64_t> level_counts;  // (L) anchors of each level
  };

  /// Declares its tensors under `scope` for maps of `channels`, the first of this stride.
  Rpn(const Scope& scope, const RpnOptions& options, const BoxOptions& boxes, std::int64_t channels,
      std::int64_t first_stride = 4);

  /// Predictions for all anchors; on a CPU without gradients, see `sampled_predictions`.
  Output operator()(const Features& features) const;

  Proposals proposals(const Output& output, const std::vector<ImageSize>& sizes,
                      bool training) const;

  /// When detecting, in a graph: of maps, `padded` (height, width) and the images' `limits` (N, 4):
  /// width, height, width, height.
  ProposalNodes proposals(const std::vector<onnx::Value>& maps, const onnx::Value& padded,
                          const onnx::Value& limits) const;

  /// The ground truth of each anchor (T, 4) in each image, (N, T); indices are those of TruthPack.
  Matches match_anchors(const at::Tensor& anchors, const std::vector<Truth>& truths) const;

  /// The anchors to draw from.
  Lot lot(const Matches& matches, const StepInfo& step) const;

  /// "loss_objectness" and "loss_rpn_box_reg" over the anchors drawn.
  LossSums losses(const Features& features, const Output& output, const std::vector<Truth>& truths,
                  const Matches& matches, const Drawn& drawn, const StepInfo& step) const;

 private:
  struct Predicted {
    at::Tensor logits;  // (R) of the anchors drawn
    at::Tensor deltas;  // (F, 4) of those in the foreground
  };
  /// The anchors drawn, with gradients. On a GPU they are taken from the output of all. On a CPU
  /// they are predicted once more, from the 3 x 3 pixels around each: the other anchors have no
  /// gradient, so that maps of hidden values are neither kept nor passed back through (decision
  /// 0037).
  Predicted sampled_predictions(const Features& features, const Output& output,
                                const Drawn& drawn) const;

  RpnOptions options_;
  BoxCoder coder_;
  AnchorGrids anchors_;
  Conv2d conv_, logits_, deltas_;
};

/// "rpn/recall50" and "rpn/recall70": the shares of objects that some proposal (P, 4) of their
/// image overlaps with an IoU of at least 0.5 and 0.7. Empty boxes are no proposals.
void add_recall(const std::vector<at::Tensor>& proposals, const std::vector<Truth>& truths,
                Figures& figures);

}  // namespace millrace
