// RetinaNet's dense heads (Lin et al. 2017b): classes and boxes of every anchor. Names as in
// torchvision. Shapes: N images, A anchors a cell, K classes, T anchors in all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/layers/layers.h"
#include "millrace/models/retinanet/options.h"

namespace millrace {

/// Convolutions shared by all levels, then `values` numbers for each anchor.
class DenseHead {
 public:
  /// Declares conv.0, conv.1 ... and the layer `name` under `scope`; the last layer's bias starts
  /// at `bias`.
  DenseHead(const Scope& scope, const char* name, const RetinaNetOptions& options,
            std::int64_t values, double bias);

  /// Maps (N, C, H_l, W_l) -> (N, T, values), order of the T: level, y, x, cell
  at::Tensor operator()(const std::vector<at::Tensor>& maps) const;

 private:
  std::vector<ConvNorm> convs_;
  Conv2d last_;
  std::int64_t values_;
};

}  // namespace millrace
