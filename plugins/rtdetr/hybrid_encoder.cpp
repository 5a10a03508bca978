#include "hybrid_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/outer.h>

#include <cmath>
#include <numbers>

#include <millrace/models/backbones/maps.h>
#include <millrace/models/onnx/operations.h>

namespace millrace::rtdetr {
namespace {

constexpr std::int64_t kBlocks = 3;  // RepVGG blocks per fusion
constexpr std::int64_t kSteps = 2;   // fusions in each direction: the number of maps - 1

at::Tensor number(std::int64_t count) { return at::arange(count, at::kDouble); }

/// Returns the `part` frequencies of the sines, and of the cosines, of rows or columns.
at::Tensor frequencies(std::int64_t part) {
  return (number(part) * (-std::log(10000.0) / static_cast<double>(part))).exp();
}

/// Returns the sine and cosine embedding of the rows and columns of a map, (1, height width,
/// channels).
at::Tensor position_embedding(std::int64_t height, std::int64_t width, std::int64_t channels) {
  const auto frequency = frequencies(channels / 4);
  const auto rows = at::outer(number(height).repeat_interleave(width), frequency),
             columns = at::outer(number(width).repeat({height}), frequency);
  return at::cat({rows.sin(), rows.cos(), columns.sin(), columns.cos()}, 1)
      .to(at::kFloat)
      .unsqueeze(0);
}

/// Adds the nodes of the embedding to a graph. `size`: a list of height and width.
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

at::Tensor apply_gelu(const at::Tensor& x) { return at::gelu(x); }
onnx::Value apply_gelu(const onnx::Value& x) {
  return (onnx::apply("Erf", x * (1 / std::numbers::sqrt2)) + 1) * (x * 0.5);
}

}  // namespace

HybridEncoder::HybridEncoder(const Scope& scope, const EncoderOptions& options, double norm_eps) {
  const auto channels = options.hidden_dim;
  const auto layer = scope / "encoder" / 0 / "layers" / 0;
  aifi_ = {SelfAttention(layer / "self_attn", channels, options.heads),
           LayerNorm(layer / "self_attn_layer_norm", channels, norm_eps),
           LayerNorm(layer / "final_layer_norm", channels, norm_eps),
           linear(layer / "fc1", channels, options.ffn_dim),
           linear(layer / "fc2", options.ffn_dim, channels)};

  const auto unit = [&](const Scope& place, const Conv2d::Shape& shape) {
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

template <class X>
X HybridEncoder::TransformerLayer::operator()(const X& x, const X& positions) const {
  const auto y = first_norm(x + attention(x, positions));
  return last_norm(y + out(apply_gelu(hidden(y))));
}

template <class X>
X HybridEncoder::RepVgg::operator()(const X& x, const NormMode& mode) const {
  return three(x, mode, {one(x, mode), Activation::silu});
}

template <class X>
X HybridEncoder::CspRep::operator()(const X& a, const X& b, const NormMode& mode) const {
  const auto both = concat_channels({a, b});
  auto y = deep(both, mode, {.activation = Activation::silu});
  for (const auto& block : blocks) y = block(y, mode);
  y = y + side(both, mode, {.activation = Activation::silu});
  return widens ? last(y, mode, {.activation = Activation::silu}) : y;
}

at::Tensor HybridEncoder::attended(const at::Tensor& map) const {
  const auto height = map.size(2), width = map.size(3);
  const auto positions = position_embedding(height, width, map.size(1));
  return aifi_(by_place(map), positions).transpose(1, 2).unflatten(2, {height, width});
}

onnx::Value HybridEncoder::attended(const onnx::Value& map) const {
  const auto positions =
      position_embedding(onnx::sides_of(map, 2, 4), aifi_.first_norm.weight.size(0));
  return onnx::reshape(onnx::transpose(aifi_(by_place(map), positions), {0, 2, 1}),
                       onnx::sides_of(map, 0, 4));
}

template <class X>
std::vector<X> HybridEncoder::operator()(std::vector<X> maps, const NormMode& mode) const {
  maps.back() = attended(maps.back());
  for (std::size_t i = 0; i < top_down_.size(); ++i) {
    auto& coarse = maps[maps.size() - 1 - i];
    auto& fine = maps[maps.size() - 2 - i];
    coarse = lateral_[i](coarse, mode, {.activation = Activation::silu});
    fine = top_down_[i](upsample_like(coarse, fine), fine, mode);
  }
  for (std::size_t i = 0; i < bottom_up_.size(); ++i)
    maps[i + 1] =
        bottom_up_[i](down_[i](maps[i], mode, {.activation = Activation::silu}), maps[i + 1], mode);
  return maps;
}

template std::vector<at::Tensor> HybridEncoder::operator()(std::vector<at::Tensor>,
                                                           const NormMode&) const;
template std::vector<onnx::Value> HybridEncoder::operator()(std::vector<onnx::Value>,
                                                            const NormMode&) const;

}  // namespace millrace::rtdetr
