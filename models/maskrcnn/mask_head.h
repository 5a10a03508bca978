// One mask per class for every region (He et al. 2017).
// Shapes: F foreground regions, K classes, M = 2 x mask_size.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/layers.h"
#include "models/maskrcnn/box_head.h"
#include "models/maskrcnn/options.h"

namespace millrace {

class MaskHead {
 public:
  MaskHead() = default;
  MaskHead(const Scope& scope, const MaskRcnnOptions& options, std::int64_t classes);

  /// "mask" over the foreground regions of the batch. Objects without a shape do not take part.
  at::Tensor loss(const std::vector<at::Tensor>& features,
                  const std::vector<SampledRegions>& regions, const std::vector<Truth>& truths,
                  bool training) const;

  /// Probabilities of the given labels, (D, M, M), for boxes (D, 4) of each image, all images together.
  at::Tensor detect(const std::vector<at::Tensor>& features, const std::vector<at::Tensor>& boxes,
                    const at::Tensor& labels) const;

  void refresh();

 private:
  at::Tensor operator()(const std::vector<at::Tensor>& features, const at::Tensor& rois,
                        bool training) const;

  MaskRcnnOptions options_;
  std::int64_t first_ = 0;  // 1: the background comes first
  std::vector<ConvNorm> convs_;
  Deconv2x2 upsample_;
  Conv2d logits_;
};

}  // namespace millrace
