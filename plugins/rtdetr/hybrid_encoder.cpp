#include "hybrid_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <cmath>
#include <numbers>

#include <millrace/models/onnx/operations.h>

namespace rtdetr {
namespace {

const millrace::After kSilu{.activation = Activation::silu};
const millrace::AfterNode kSiluNode{.activation = Activation::silu};
constexpr std::int64_t kBlocks = 3;  // RepVGG blocks per fusion
constexpr std::int64_t kSteps = 2;   // fusions in each direction: the number of maps - 1

at::Tensor number(std::int64_t count) { return at::arange(count, at::kDouble); }

/// Returns the `part` frequencies of the sines, and of the cosines, of rows or columns.
at::Tensor frequencies(std::int64_t part) {
  return (number(part) * (-std::log(10000.0) / static_cast<double>(part))).exp();
}

}  // namespace

at::Tensor position_embedding(std::int64_t height, std::int64_t width, std::int64_t channels) {
  const auto frequency = frequencies(channels / 4);
  const auto rows = at::outer(number(height).repeat_interleave(width), frequency),
             columns = at::outer(number(width).repeat({height}), frequency);
  return at::cat({rows.sin(), rows.cos(), columns.sin(), columns.cos()}, 1)
      .to(at::kFloat)
      .unsqueeze(0);
}

onnx::Value position_embedding(const onnx::Value& size, std::int64_t channels) {
  auto& g = *size.graph;
  const auto place = g.in("position_embedding");
  const auto frequency = g.constant(frequencies(channels / 4), "frequencies");
  const auto shape = onnx::concat({size, g.ints({channels / 4})}, 0);
  const auto waves = [&](std::int64_t axis, const char* op) {  // (H, W, channels / 4)
    const auto number =
        onnx::cast(onnx::range(onnx::slice(size, 0, axis, axis + 1)), onnx::Type::f64);
    const auto angle = onnx::unsqueeze(number, {1}) * frequency;
    return onnx::expand(onnx::unsqueeze(onnx::apply(op, angle), {1 - axis}), shape);
  };
  const auto all =
      onnx::concat({waves(0, "Sin"), waves(0, "Cos"), waves(1, "Sin"), waves(1, "Cos")}, 2);
  return onnx::cast(onnx::reshape(all, {1, -1, channels}), onnx::Type::f32);
}

HybridEncoder::HybridEncoder(const Scope& scope, const EncoderOptions& options, double norm_eps) {
  const auto channels = options.hidden_dim;
  const auto layer = scope / "encoder" / 0 / "layers" / 0;
  aifi_ = {SelfAttention(layer / "self_attn", channels, options.heads),
           LayerNorm(layer / "self_attn_layer_norm", channels, norm_eps),
           LayerNorm(layer / "final_layer_norm", channels, norm_eps),
           linear(layer / "fc1", channels, options.ffn_dim),
           linear(layer / "fc2", options.ffn_dim, channels)};

  const auto unit = [&](const Scope& place, const millrace::Conv2d::Shape& shape) {
    return ConvNorm(place / "conv", place / "norm", shape, {options.norm, norm_eps});
  };
  const auto inside = static_cast<std::int64_t>(static_cast<double>(channels) * options.expansion);
  const auto fusion = [&](const Scope& place) {
    CspRep csp;
    csp.deep = unit(place / "conv1", {2 * channels, inside, 1});
    csp.side = unit(place / "conv2", {2 * channels, inside, 1});
    csp.widens = inside != channels;
    for (std::int64_t i = 0; i < kBlocks; ++i) {
      const auto block = place / "bottlenecks" / i;
      csp.blocks.push_back(
          {unit(block / "conv1", {inside, inside, 3}), unit(block / "conv2", {inside, inside, 1})});
    }
    if (csp.widens) csp.last = unit(place / "conv3", {inside, channels, 1});
    return csp;
  };
  for (std::int64_t i = 0; i < kSteps; ++i) {
    lateral_.push_back(unit(scope / "lateral_convs" / i, {channels, channels, 1}));
    top_down_.push_back(fusion(scope / "fpn_blocks" / i));
  }
  for (std::int64_t i = 0; i < kSteps; ++i) {
    down_.push_back(unit(scope / "downsample_convs" / i, {channels, channels, 3, 2}));
    bottom_up_.push_back(fusion(scope / "pan_blocks" / i));
  }
}

at::Tensor HybridEncoder::TransformerLayer::operator()(const at::Tensor& x,
                                                       const at::Tensor& positions) const {
  const auto y = first_norm(x + attention(x, positions));
  return last_norm(y + out(at::gelu(hidden(y))));
}

onnx::Value HybridEncoder::TransformerLayer::operator()(const onnx::Value& x,
                                                        const onnx::Value& positions) const {
  const auto gelu = [](const onnx::Value& z) {
    return (onnx::apply("Erf", z * (1 / std::numbers::sqrt2)) + 1) * (z * 0.5);
  };
  const auto y = first_norm(x + attention(x, positions));
  return last_norm(y + out(gelu(hidden(y))));
}

at::Tensor HybridEncoder::RepVgg::operator()(const at::Tensor& x, const NormMode& mode) const {
  return three(x, mode, {one(x, mode), Activation::silu});
}

onnx::Value HybridEncoder::RepVgg::operator()(const onnx::Value& x) const {
  return three(x, {one(x), Activation::silu});
}

at::Tensor HybridEncoder::CspRep::operator()(const at::Tensor& a, const at::Tensor& b,
                                             const NormMode& mode) const {
  const auto both = at::cat({a, b}, 1);
  auto y = deep(both, mode, kSilu);
  for (const auto& block : blocks) y = block(y, mode);
  y = y + side(both, mode, kSilu);
  return widens ? last(y, mode, kSilu) : y;
}

onnx::Value HybridEncoder::CspRep::operator()(const onnx::Value& a, const onnx::Value& b) const {
  const auto both = onnx::concat({a, b}, 1);
  auto y = deep(both, kSiluNode);
  for (const auto& block : blocks) y = block(y);
  y = y + side(both, kSiluNode);
  return widens ? last(y, kSiluNode) : y;
}

std::vector<at::Tensor> HybridEncoder::operator()(std::vector<at::Tensor> maps,
                                                  const NormMode& mode) const {
  auto& coarsest = maps.back();
  const auto height = coarsest.size(2), width = coarsest.size(3);
  const auto positions = position_embedding(height, width, coarsest.size(1));
  coarsest = aifi_(by_place(coarsest), positions).transpose(1, 2).unflatten(2, {height, width});

  for (std::size_t i = 0; i < top_down_.size(); ++i) {
    auto& coarse = maps[maps.size() - 1 - i];
    auto& fine = maps[maps.size() - 2 - i];
    coarse = lateral_[i](coarse, mode, kSilu);
    fine = top_down_[i](at::upsample_nearest2d(coarse, {fine.size(2), fine.size(3)}), fine, mode);
  }
  for (std::size_t i = 0; i < bottom_up_.size(); ++i)
    maps[i + 1] = bottom_up_[i](down_[i](maps[i], mode, kSilu), maps[i + 1], mode);
  return maps;
}

std::vector<onnx::Value> HybridEncoder::operator()(std::vector<onnx::Value> maps) const {
  auto& coarsest = maps.back();
  const auto positions =
      position_embedding(onnx::sides_of(coarsest, 2, 4), aifi_.first_norm.weight.size(0));
  coarsest = onnx::reshape(onnx::transpose(aifi_(by_place(coarsest), positions), {0, 2, 1}),
                           onnx::sides_of(coarsest, 0, 4));

  for (std::size_t i = 0; i < top_down_.size(); ++i) {
    auto& coarse = maps[maps.size() - 1 - i];
    auto& fine = maps[maps.size() - 2 - i];
    coarse = lateral_[i](coarse, kSiluNode);
    fine = top_down_[i](onnx::upsample_nearest(coarse, onnx::sides_of(fine, 2, 4)), fine);
  }
  for (std::size_t i = 0; i < bottom_up_.size(); ++i)
    maps[i + 1] = bottom_up_[i](down_[i](maps[i], kSiluNode), maps[i + 1]);
  return maps;
}

}  // namespace rtdetr
