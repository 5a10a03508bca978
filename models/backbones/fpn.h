// Feature pyramid (Lin et al. 2017): P2..P5 from C2..C5, P6 by subsampling P5. Names as in torchvision.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "models/layers/layers.h"

namespace millrace {

class Fpn {
 public:
  Fpn() = default;
  Fpn(const Scope& scope, const std::array<std::int64_t, 4>& in, std::int64_t channels,
      const NormOptions& norm);

  /// C2..C5 -> P2..P6, each (N, channels, H / stride, W / stride)
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& c, bool training) const;

  void refresh();

 private:
  std::array<ConvNorm, 4> lateral_, output_;
};

}  // namespace millrace
