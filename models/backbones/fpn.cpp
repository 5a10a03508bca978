#include "millrace/models/backbones/fpn.h"

#include "millrace/models/backbones/maps.h"

namespace millrace {
namespace {

/// Makes a block with torchvision's names: the convolution is child 0, the norm child 1.
ConvNorm block(const Scope& scope, std::int64_t in, std::int64_t out, std::int64_t kernel,
               const NormOptions& norm) {
  return {scope / 0, scope / 1, {in, out, kernel}, norm, 1, {Init::Kind::xavier}};
}

}  // namespace

Fpn::Fpn(const Scope& scope, at::IntArrayRef in, std::int64_t channels, const NormOptions& norm,
         FpnTop top)
    : top_(top) {
  for (std::size_t level = 0; level < in.size(); ++level) {
    const auto number = static_cast<std::int64_t>(level);
    lateral_.push_back(block(scope / "inner_blocks" / number, in[level], channels, 1, norm));
    output_.push_back(block(scope / "layer_blocks" / number, channels, channels, 3, norm));
  }
  if (top == FpnTop::pool) return;
  const auto extra = scope / "extra_blocks";
  const Init xavier{Init::Kind::xavier};
  p6_ = Conv2d(extra / "p6", {top == FpnTop::p5 ? channels : in.back(), channels, 3, 2}, xavier);
  p7_ = Conv2d(extra / "p7", {channels, channels, 3, 2}, xavier);
}

template <class X>
std::vector<X> Fpn::operator()(const std::vector<X>& c, const NormMode& mode) const {
  std::vector<X> p(c.size());
  X inner;
  for (std::size_t level = c.size(); level-- > 0;) {
    AfterOf<X> coarser;
    if (inner.defined()) coarser.add = upsample_like(inner, c[level]);
    inner = lateral_[level](c[level], mode, coarser);
    p[level] = output_[level](inner, mode);
  }
  if (top_ == FpnTop::pool) {
    p.push_back(max_pooled(p.back(), 1));
  } else {
    p.push_back(p6_(top_ == FpnTop::p5 ? p.back() : c.back()));
    p.push_back(p7_(apply_relu(p.back())));
  }
  return p;
}

template std::vector<at::Tensor> Fpn::operator()(const std::vector<at::Tensor>&,
                                                 const NormMode&) const;
template std::vector<onnx::Value> Fpn::operator()(const std::vector<onnx::Value>&,
                                                  const NormMode&) const;

}  // namespace millrace
