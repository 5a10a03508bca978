#include "transformer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>

#include <millrace/models/onnx/operations.h>

namespace millrace::rtdetr {

Linear linear(const Scope& scope, std::int64_t in, std::int64_t out, double bound, double bias) {
  Linear layer;
  layer.weight = scope.uniform("weight", {out, in}, bound);
  layer.bias = scope.constant("bias", {out}, bias, ParameterKind::bias);
  return layer;
}

Linear linear(const Scope& scope, std::int64_t in, std::int64_t out) {
  return linear(scope, in, out, 1 / std::sqrt(static_cast<double>(in)));
}

Linear glorot_linear(const Scope& scope, std::int64_t in, std::int64_t out, double bias) {
  return linear(scope, in, out, std::sqrt(6 / static_cast<double>(in + out)), bias);
}

LayerNorm::LayerNorm(const Scope& scope, std::int64_t channels, double own_epsilon)
    : weight(scope.constant("weight", {channels}, 1, ParameterKind::norm)),
      bias(scope.constant("bias", {channels}, 0, ParameterKind::norm)),
      epsilon(own_epsilon) {}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  return at::layer_norm(x, weight.sizes(), weight, bias, epsilon);
}

onnx::Value LayerNorm::operator()(const onnx::Value& x) const {
  auto& g = *x.graph;
  const auto place = g.in(g.layer_of(weight));
  return g.add("LayerNormalization", {x, g.parameter(weight), g.parameter(bias)},
               {{"epsilon", static_cast<float>(epsilon)}});
}

SelfAttention::SelfAttention(const Scope& scope, std::int64_t channels, std::int64_t own_heads)
    : query(glorot_linear(scope / "q_proj", channels, channels)),
      key(glorot_linear(scope / "k_proj", channels, channels)),
      value(glorot_linear(scope / "v_proj", channels, channels)),
      out(glorot_linear(scope / "out_proj", channels, channels)),
      heads(own_heads) {}

at::Tensor SelfAttention::operator()(const at::Tensor& x, const at::Tensor& positions,
                                     const at::Tensor& mask) const {
  const auto places = x + positions;
  const auto by_head = [&](const at::Tensor& all) {  // (N, heads, S, C / heads)
    return all.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
  };
  const auto q = by_head(query(places)), k = by_head(key(places)), v = by_head(value(x));
  const auto own_mask = mask.defined() ? std::optional(mask.to(q.scalar_type())) : std::nullopt;
  const auto read = at::scaled_dot_product_attention(q, k, v, own_mask);
  return out(read.transpose(1, 2).reshape(x.sizes()));
}

onnx::Value SelfAttention::operator()(const onnx::Value& x, const onnx::Value& positions) const {
  auto& g = *x.graph;
  const auto channels = out.weight.size(0), own = channels / heads;
  const auto by_head = [&](const onnx::Value& all, const onnx::Ints& order) {
    return onnx::transpose(onnx::reshape(all, {0, 0, heads, own}), order);
  };
  const auto places = x + positions;
  const auto q = by_head(query(places), {0, 2, 1, 3}),  // (N, heads, S, C / heads)
      k = by_head(key(places), {0, 2, 3, 1}),           // (N, heads, C / heads, S)
      v = by_head(value(x), {0, 2, 1, 3});
  const auto logits = g.add("MatMul", {q * (1 / std::sqrt(static_cast<double>(own))), k});
  const auto read = g.add("MatMul", {g.add("Softmax", {logits}, {{"axis", std::int64_t{-1}}}), v});
  return out(onnx::reshape(onnx::transpose(read, {0, 2, 1, 3}), {0, 0, channels}));
}

Mlp::Mlp(const Scope& scope, std::int64_t in, std::int64_t hidden, std::int64_t out,
         std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    layers.push_back(
        linear(scope / "layers" / i, i == 0 ? in : hidden, i + 1 == count ? out : hidden));
}

at::Tensor by_place(const at::Tensor& map) { return map.flatten(2).transpose(1, 2); }
onnx::Value by_place(const onnx::Value& map) {
  return onnx::transpose(onnx::reshape(map, {0, 0, -1}), {0, 2, 1});
}

}  // namespace millrace::rtdetr
