#include "models/backbones/fpn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/upsample_nearest2d.h>

namespace millrace {
namespace {

/// torchvision's names: the convolution is child 0 of its block, the norm child 1.
ConvNorm block(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel,
               const NormOptions& norm) {
  return {scope / 0, scope / 1, {in, out, kernel}, norm, 1, {Init::Kind::xavier}};
}

}  // namespace

Fpn::Fpn(const Scope& scope, const std::array<std::int64_t, 4>& in, std::int64_t channels,
         const NormOptions& norm) {
  for (std::size_t level = 0; level < 4; ++level) {
    const auto number = static_cast<std::int64_t>(level);
    lateral_[level] = block(scope / "inner_blocks" / number, in[level], channels, 1, norm);
    output_[level] = block(scope / "layer_blocks" / number, channels, channels, 3, norm);
  }
}

std::vector<at::Tensor> Fpn::operator()(const std::vector<at::Tensor>& c, bool training) const {
  std::vector<at::Tensor> p(5);
  at::Tensor inner;
  for (std::size_t level = 4; level-- > 0;) {
    After coarser;
    if (inner.defined()) {
      const std::array size{c[level].size(2), c[level].size(3)};
      coarser.add = at::upsample_nearest2d(inner, size);
    }
    inner = lateral_[level](c[level], training, coarser);
    p[level] = output_[level](inner, training);
  }
  p[4] = at::max_pool2d(p[3], 1, 2);
  return p;
}

void Fpn::refresh() {
  for (auto& conv : lateral_) conv.refresh();
  for (auto& conv : output_) conv.refresh();
}

}  // namespace millrace
