#include "millrace/models/backbones/fpn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <array>

#include "millrace/models/onnx/operations.h"

namespace millrace {
namespace {

/// torchvision's names: the convolution is child 0 of its block, the norm child 1.
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

std::vector<at::Tensor> Fpn::operator()(at::TensorList c, const NormPass& pass) const {
  std::vector<at::Tensor> p(c.size());
  at::Tensor inner;
  for (std::size_t level = c.size(); level-- > 0;) {
    After coarser;
    if (inner.defined()) {
      const std::array size{c[level].size(2), c[level].size(3)};
      coarser.add = at::upsample_nearest2d(inner, size);
    }
    inner = lateral_[level](c[level], pass, coarser);
    p[level] = output_[level](inner, pass);
  }
  if (top_ == FpnTop::pool) {
    p.push_back(at::max_pool2d(p.back(), 1, 2));
  } else {
    p.push_back(p6_(top_ == FpnTop::p5 ? p.back() : c.back()));
    p.push_back(p7_(at::relu(p.back())));
  }
  return p;
}

std::vector<onnx::Value> Fpn::operator()(const std::vector<onnx::Value>& c) const {
  auto& g = *c[0].graph;
  std::vector<onnx::Value> p(c.size());
  onnx::Value inner;
  for (std::size_t level = c.size(); level-- > 0;) {
    AfterNode coarser;
    if (inner.defined())
      coarser.add = onnx::upsample_nearest(inner, onnx::sides_of(c[level], 2, 4));
    inner = lateral_[level](c[level], coarser);
    p[level] = output_[level](inner);
  }
  if (top_ == FpnTop::pool) {
    p.push_back(g.add("MaxPool", {p.back()},
                      {{"kernel_shape", onnx::Ints{1, 1}}, {"strides", onnx::Ints{2, 2}}}));
  } else {
    p.push_back(p6_(top_ == FpnTop::p5 ? p.back() : c.back()));
    p.push_back(p7_(onnx::apply("Relu", p.back())));
  }
  return p;
}

}  // namespace millrace
