// Predicts a mask of each class for every region (He et al. 2017). Shapes: F foreground regions, M
// = 2 x mask.pooler_resolution.
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
  /// Declares its parameters under `scope`. `in`: channels of pooled regions; `first` as in
  /// BoxHead.
  MaskHead(const Scope& scope, const MaskHeadOptions& options, const NormOptions& norm,
           RegionPooler pool, std::int64_t in, std::int64_t classes, std::int64_t first);

  /// Returns "loss_mask" over the pixels of the batch's foreground regions. Objects without a shape
  /// are excluded; if no object of the step has one, the head is not computed.
  LossSum loss(const Features& features, const SampledRegions& regions,
               const std::vector<Truth>& truths, const StepInfo& step) const;

  /// Returns probabilities of the given labels, (D, M, M), for the boxes (D, 4) of each image; D
  /// counts those of all images.
  at::Tensor detect(const Features& features, const std::vector<at::Tensor>& boxes,
                    const at::Tensor& labels) const;

  /// Adds the nodes for regions and their labels (D); returns (D, M, M).
  onnx::Value detect(const std::vector<onnx::Value>& maps, const RegionNodes& regions,
                     const onnx::Value& labels) const;
  std::int64_t cells() const { return 2 * pool_.side(options_.pooler_resolution); }

  /// Returns mask logits (F, Q, M, M) of Q channels for each of rois (F, 5). `channels` (F, Q)
  /// int64 are indices that include a background that comes first.
  at::Tensor operator()(const Features& features, const at::Tensor& rois,
                        const at::Tensor& channels, const NormMode& mode) const;

 private:
  /// Takes (F, C, M / 2, M / 2); returns (F, Q, M, M). Other channels have no loss and no result,
  /// so they are not computed.
  at::Tensor logits(at::Tensor x, const at::Tensor& channels, const NormMode& mode) const;

  MaskHeadOptions options_;
  RegionPooler pool_;
  std::int64_t first_;
  std::vector<ConvNorm> convs_;
  Deconv2x2 upsample_;
  Conv2d predict_;
};

}  // namespace millrace
