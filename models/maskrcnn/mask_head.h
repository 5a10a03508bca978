// A mask of its own class for every region (He et al. 2017).
// Shapes: F foreground regions, M = 2 x mask.pooler_resolution.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/layers/layers.h"
#include "millrace/models/layers/results.h"
#include "millrace/models/maskrcnn/mask_targets.h"
#include "millrace/models/maskrcnn/regions.h"
#include "millrace/models/pyramid_detector.h"

namespace millrace {

struct MaskHeadOptions {
  std::int64_t pooler_resolution = 14;
  std::int64_t conv_dim = 256;
  std::int64_t num_convs = 4;
  double init_std = 0.001;
  MaskTarget target = MaskTarget::binary;
  MaskPaste paste = MaskPaste::grid;

  void describe(Options& o);
};

class MaskHead {
 public:
  /// Declares its tensors under `scope`; `in` are the channels of what is pooled, `first` as in
  /// BoxHead.
  MaskHead(const Scope& scope, const MaskHeadOptions& options, const NormOptions& norm,
           RegionPooler pool, std::int64_t in, std::int64_t classes, std::int64_t first);

  /// "loss_mask" over the pixels of the foreground regions of the batch. Objects without a shape do
  /// not take part; if no object of the step has one, the head is not computed.
  LossSum loss(const Features& features, const SampledRegions& regions,
               const std::vector<Truth>& truths, const StepInfo& step) const;

  /// Probabilities of the given labels, (D, M, M), for boxes (D, 4) of each image, all images
  /// together.
  at::Tensor detect(const Features& features, const std::vector<at::Tensor>& boxes,
                    const at::Tensor& labels) const;

  /// In a graph: regions and their labels (D) -> (D, M, M).
  onnx::Value detect(const std::vector<onnx::Value>& maps, const RegionNodes& regions,
                     const onnx::Value& labels) const;
  std::int64_t cells() const { return 2 * pool_.side(options_.pooler_resolution); }

  /// Mask logits of Q of the classes for each of rois (F, 5), `channels` (F, Q) int64, which count
  /// a background that comes first: (F, Q, M, M).
  at::Tensor operator()(const Features& features, const at::Tensor& rois,
                        const at::Tensor& channels, const NormPass& pass) const;

 private:
  /// (F, C, M / 2, M / 2) -> (F, Q, M, M): others would have no loss, and no result.
  at::Tensor logits(at::Tensor x, const at::Tensor& channels, const NormPass& pass) const;

  MaskHeadOptions options_;
  RegionPooler pool_;
  std::int64_t first_;
  std::vector<ConvNorm> convs_;
  Deconv2x2 upsample_;
  Conv2d predict_;
};

}  // namespace millrace
