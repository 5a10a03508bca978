#include "decoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>

#include <numbers>

#include <millrace/models/onnx/operations.h>

#include "box_forms.h"
#include "query_selection.h"

namespace millrace::rtdetr {
namespace {

/// Returns the initial offsets (M L P 2): each head has its own direction, and each point is one
/// step further (Zhu et al. 2021).
at::Tensor first_offsets(std::int64_t heads, std::int64_t maps, std::int64_t points) {
  const auto angle =
      at::arange(heads, at::kFloat) * (2 * std::numbers::pi / static_cast<double>(heads));
  auto direction = at::stack({angle.cos(), angle.sin()}, 1);
  direction = direction / std::get<0>(direction.abs().max(1, /*keepdim=*/true));
  const auto step = at::arange(1, points + 1, at::kFloat).view({1, 1, points, 1});
  return (direction.view({heads, 1, 1, 2}) * step).expand({heads, maps, points, 2}).flatten();
}

}  // namespace

Decoder::CrossAttention Decoder::cross_attention(const Scope& scope, const RtDetrOptions& options,
                                                 std::int64_t maps) const {
  const auto& own = options.decoder;
  const auto channels = own.hidden_dim, samples = own.heads * maps * own.points;
  CrossAttention attention{
      .offsets = linear(scope / "sampling_offsets", channels, 2 * samples, /*bound=*/0),
      .weights = linear(scope / "attention_weights", channels, samples, /*bound=*/0),
      .value = glorot_linear(scope / "value_proj", channels, channels),
      .out = glorot_linear(scope / "output_proj", channels, channels),
      .heads = own.heads,
      .points = own.points,
      .scale = own.offset_scale};
  if (options.version == Version::v2)  // a buffer of transformers' checkpoints
    scope.constant("n_points_scale", {maps * own.points}, 1 / static_cast<double>(own.points),
                   ParameterKind::buffer);
  const at::NoGradGuard no_grad;
  attention.offsets.bias.copy_(first_offsets(own.heads, maps, own.points));
  return attention;
}

at::Tensor Decoder::CrossAttention::operator()(const at::Tensor& x, const at::Tensor& boxes,
                                               const at::Tensor& memory,
                                               const MapSizes& sizes) const {
  const auto images = x.size(0), queries = x.size(1), maps = std::ssize(sizes);
  const auto values = value(memory).view({images, memory.size(1), heads, -1});
  const auto offset = offsets(x).to(at::kFloat).view({images, queries, heads, maps, points, 2});
  const auto share = at::softmax(weights(x).to(at::kFloat).view({images, queries, heads, -1}), -1);
  const auto box = boxes.view({images, queries, 1, 1, 1, 4});
  const auto locations = box.narrow(-1, 0, 2) +
                         offset * (box.narrow(-1, 2, 2) * (scale / static_cast<double>(points)));
  return out(deformable_attention(values, sizes, locations,
                                  share.view({images, queries, heads, maps, points}))
                 .to(x.scalar_type()));
}

onnx::Value Decoder::CrossAttention::operator()(const onnx::Value& x, const onnx::Value& boxes,
                                                const onnx::Value& memory,
                                                const std::vector<onnx::Value>& sizes) const {
  auto& g = *x.graph;
  const auto maps = std::ssize(sizes), own = value.weight.size(0) / heads;
  const auto values = onnx::reshape(value(memory), {0, 0, heads, own});
  const auto offset = onnx::reshape(offsets(x), {0, 0, heads, maps, points, 2});
  const auto share = g.add("Softmax", {onnx::reshape(weights(x), {0, 0, heads, maps * points})},
                           {{"axis", std::int64_t{-1}}});
  const auto box = onnx::reshape(boxes, {0, 0, 1, 1, 1, 4});
  const auto locations =
      onnx::slice(box, -1, 0, 2) +
      offset * (onnx::slice(box, -1, 2, 4) * (scale / static_cast<double>(points)));
  return out(deformable_attention(values, sizes, locations,
                                  onnx::reshape(share, {0, 0, heads, maps, points})));
}

Decoder::Decoder(const Scope& scope, const RtDetrOptions& options, std::int64_t classes,
                 std::int64_t maps) {
  const auto& own = options.decoder;
  const auto norm = [&](const Scope& place) {
    return LayerNorm(place, own.hidden_dim, options.norm_eps);
  };
  for (std::int64_t i = 0; i < own.layers; ++i) {
    const auto layer = scope / "layers" / i;
    layers_.push_back({SelfAttention(layer / "self_attn", own.hidden_dim, own.heads),
                       cross_attention(layer / "encoder_attn", options, maps),
                       norm(layer / "self_attn_layer_norm"),
                       norm(layer / "encoder_attn_layer_norm"), norm(layer / "final_layer_norm"),
                       linear(layer / "fc1", own.hidden_dim, own.ffn_dim),
                       linear(layer / "fc2", own.ffn_dim, own.hidden_dim)});
  }
  position_ = Mlp(scope / "query_pos_head", 4, 2 * own.hidden_dim, own.hidden_dim, 2);
  for (std::int64_t i = 0; i < own.layers; ++i)
    classes_.push_back(
        glorot_linear(scope / "class_embed" / i, own.hidden_dim, classes, prior_bias()));
  for (std::int64_t i = 0; i < own.layers; ++i)
    boxes_.push_back(box_head(scope / "bbox_embed" / i, own.hidden_dim));
  scope.set_classes("class_embed", {.values = 1});
}

std::vector<Prediction> Decoder::operator()(const at::Tensor& features,
                                            const at::Tensor& box_logits, const at::Tensor& mask,
                                            const at::Tensor& memory, const MapSizes& sizes,
                                            bool last_only) const {
  std::vector<Prediction> result;
  auto x = features;
  auto boxes = at::sigmoid(box_logits);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const auto positions = position_(boxes);
    x = layer.self_norm(x + layer.self(x, positions, mask));
    x = layer.cross_norm(x + layer.cross(x + positions, boxes, memory, sizes));
    x = layer.last_norm(x + layer.out(at::relu(layer.hidden(x))));
    const auto refined = at::sigmoid(boxes_[i](x).to(at::kFloat) + inverse_sigmoid(boxes));
    const bool asked = !last_only || i + 1 == layers_.size();
    result.push_back({asked ? classes_[i](x).to(at::kFloat) : at::Tensor(), refined, x});
    boxes = refined.detach();  // gradients do not pass between layers through the boxes
  }
  return result;
}

PredictionNodes Decoder::operator()(const onnx::Value& features, const onnx::Value& box_logits,
                                    const onnx::Value& memory,
                                    const std::vector<onnx::Value>& sizes) const {
  auto x = features;
  auto boxes = onnx::apply("Sigmoid", box_logits);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const auto positions = position_(boxes);
    x = layer.self_norm(x + layer.self(x, positions));
    x = layer.cross_norm(x + layer.cross(x + positions, boxes, memory, sizes));
    x = layer.last_norm(x + layer.out(onnx::apply("Relu", layer.hidden(x))));
    boxes = onnx::apply("Sigmoid", boxes_[i](x) + inverse_sigmoid(boxes));
  }
  return {classes_.back()(x), boxes};
}

}  // namespace millrace::rtdetr
