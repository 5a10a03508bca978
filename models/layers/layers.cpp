#include "millrace/models/layers/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>

#include <cmath>
#include <mutex>

#include "millrace/base/random.h"
#include "millrace/models/layers/batch_norms.h"
#include "millrace/models/layers/convolution.h"
#include "millrace/models/layers/matrix_product.h"
#include "millrace/models/onnx/operations.h"

namespace millrace {
namespace {

at::Tensor blank(at::IntArrayRef shape) {
  return at::empty(shape, at::TensorOptions(at::kFloat)
                              .memory_format(shape.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                               : at::MemoryFormat::Contiguous));
}

at::Tensor initial_weight(const Scope& scope, at::IntArrayRef shape, const Init& init) {
  const auto receptive = shape.size() == 4 ? shape[2] * shape[3] : 1;
  const auto fan_in = static_cast<double>(shape[1] * receptive);
  if (init.kind == Init::Kind::xavier)
    return scope.uniform("weight", shape, std::sqrt(3.0 / fan_in));
  if (init.kind == Init::Kind::torch)
    return scope.uniform("weight", shape, std::sqrt(1.0 / fan_in));
  return scope.normal("weight", shape,
                      init.kind == Init::Kind::he
                          ? std::sqrt(2.0 / static_cast<double>(shape[0] * receptive))
                          : init.value);
}

onnx::Value finish(onnx::Value y, const AfterNode& after) {
  if (after.add.defined()) y = y + after.add;
  if (after.activation == Activation::silu) return y * onnx::apply("Sigmoid", y);
  return after.activation == Activation::relu ? onnx::apply("Relu", y) : y;
}

}  // namespace

at::Generator Scope::generator(std::string_view name) const {
  std::uint64_t key = mix(seed_ + 1);
  for (const char c : full(name)) key = mix(key + static_cast<unsigned char>(c));
  return at::detail::createCPUGenerator(key);
}

at::Tensor Scope::declare(std::string_view name, const at::Tensor& value,
                          ParameterKind kind) const {
  return parameters_.add(full(name), value.to(device_), kind);
}

at::Tensor Scope::constant(std::string_view name, at::IntArrayRef shape, double value,
                           ParameterKind kind) const {
  return declare(name, at::full(shape, value, at::kFloat), kind);
}

at::Tensor Scope::normal(std::string_view name, at::IntArrayRef shape, double deviation) const {
  auto value = blank(shape);
  if (random_) value.normal_(0, deviation, generator(name));
  return declare(name, value, ParameterKind::weight);
}

at::Tensor Scope::uniform(std::string_view name, at::IntArrayRef shape, double bound) const {
  auto value = blank(shape);
  if (random_) value.uniform_(-bound, bound, generator(name));
  return declare(name, value, ParameterKind::weight);
}

Conv2d::Conv2d(const Scope& scope, const Shape& shape, const Init& init)
    : weight(initial_weight(scope, {shape.out, shape.in / shape.groups, shape.kernel, shape.kernel},
                            init)),
      stride(shape.stride),
      padding(shape.kernel / 2),
      groups(shape.groups) {
  if (shape.bias) bias = scope.constant("bias", {shape.out}, 0, ParameterKind::bias);
}

at::Tensor Conv2d::operator()(const at::Tensor& x, const After& after) const {
  return convolve(x, {weight, {}, bias, stride, padding, groups}, after);
}

std::vector<at::Tensor> Conv2d::operator()(const std::vector<at::Tensor>& maps,
                                           Activation activation) const {
  return convolve(maps, {weight, {}, bias, stride, padding, groups}, activation);
}

onnx::Value Conv2d::operator()(const onnx::Value& x, const AfterNode& after) const {
  auto& g = *x.graph;
  const auto place = g.in(g.layer_of(weight));
  std::vector<onnx::Value> inputs{x, g.parameter(weight)};
  if (bias.defined()) inputs.push_back(g.parameter(bias));
  return finish(g.add("Conv", inputs,
                      {{"kernel_shape", onnx::Ints{weight.size(2), weight.size(3)}},
                       {"strides", onnx::Ints{stride, stride}},
                       {"group", groups},
                       {"pads", onnx::Ints{padding, padding, padding, padding}}}),
                after);
}

Deconv2x2::Deconv2x2(const Scope& scope, std::int64_t in, std::int64_t out)
    : weight(
          scope.normal("weight", {in, out, 2, 2}, std::sqrt(2.0 / static_cast<double>(out * 4)))),
      bias(scope.constant("bias", {out}, 0, ParameterKind::bias)) {}

at::Tensor Deconv2x2::operator()(const at::Tensor& x) const {
  return at::conv_transpose2d(x, weight, bias, 2);
}

onnx::Value Deconv2x2::operator()(const onnx::Value& x) const {
  auto& g = *x.graph;
  const auto place = g.in(g.layer_of(weight));
  return g.add("ConvTranspose", {x, g.parameter(weight), g.parameter(bias)},
               {{"kernel_shape", onnx::Ints{2, 2}}, {"strides", onnx::Ints{2, 2}}});
}

Linear::Linear(const Scope& scope, std::int64_t in, std::int64_t out, const Init& init)
    : weight(initial_weight(scope, {out, in}, init)),
      bias(scope.constant("bias", {out}, 0, ParameterKind::bias)) {}

at::Tensor Linear::operator()(const at::Tensor& x) const { return linear(x, weight, bias); }

onnx::Value Linear::operator()(const onnx::Value& x) const {
  auto& g = *x.graph;
  const auto place = g.in(g.layer_of(weight));
  return g.add("MatMul", {x, onnx::transpose(g.parameter(weight), {1, 0})}) + g.parameter(bias);
}

ConvNorm::ConvNorm(const Scope& conv_scope, const Scope& norm_scope, Conv2d::Shape shape,
                   const NormOptions& norm, double scale, const Init& init)
    : parameters_(&conv_scope.parameters()), norm_(norm) {
  shape.bias = norm.kind == Norm::none;
  conv_ = Conv2d(conv_scope, shape, init);
  if (norm.kind == Norm::none) return;
  const bool frozen = norm.kind == Norm::frozen_bn;
  const auto affine = frozen ? ParameterKind::buffer : ParameterKind::norm;
  weight_ = norm_scope.constant("weight", {shape.out}, scale, affine);
  bias_ = norm_scope.constant("bias", {shape.out}, 0, affine);
  if (norm.kind == Norm::gn) {
    while (groups_ < 32 && shape.out % (groups_ * 2) == 0 && shape.out / (groups_ * 2) >= 2)
      groups_ *= 2;
    return;
  }
  mean_ = norm_scope.constant("running_mean", {shape.out}, 0, ParameterKind::buffer);
  var_ = norm_scope.constant("running_var", {shape.out}, 1, ParameterKind::buffer);
}

ConvNorm::Folded ConvNorm::fold() const {
  const auto scale = weight_ * at::rsqrt(var_ + norm_.epsilon);
  return {scale, bias_ - mean_ * scale, {}, parameters_->changes()};
}

at::Tensor ConvNorm::operator()(const at::Tensor& x, const NormMode& mode,
                                const After& after) const {
  if (norm_.kind == Norm::none) return conv_(x, after);
  if (norm_.kind == Norm::gn) return group_norm(conv_(x), after);
  const bool by_batch = norm_.kind == Norm::bn || norm_.kind == Norm::sync_bn;
  if (by_batch && (mode.training || at::GradMode::is_enabled()))
    return batch_norm(conv_(x), mode, after);
  return frozen(x, after);
}

std::vector<at::Tensor> ConvNorm::operator()(const std::vector<at::Tensor>& maps,
                                             const NormMode& mode, Activation activation) const {
  if (norm_.kind == Norm::none) return conv_(maps, activation);
  std::vector<at::Tensor> results;
  if (norm_.kind == Norm::gn)
    for (const auto& y : conv_(maps)) results.push_back(group_norm(y, {.activation = activation}));
  else
    for (const auto& map : maps) results.push_back((*this)(map, mode, {.activation = activation}));
  return results;
}

onnx::Value ConvNorm::operator()(const onnx::Value& x, const AfterNode& after) const {
  if (norm_.kind == Norm::none) return conv_(x, after);
  auto y = conv_(x);
  auto& g = *x.graph;
  const auto place = g.in(g.layer_of(weight_));
  const auto epsilon = static_cast<float>(norm_.epsilon);
  if (norm_.kind != Norm::gn) {
    y = g.add("BatchNormalization",
              {y, g.parameter(weight_), g.parameter(bias_), g.parameter(mean_), g.parameter(var_)},
              {{"epsilon", epsilon}});
    return finish(y, after);
  }
  // Opset 17 has no group norm: the groups become the channels of an instance norm. The shape has
  // no -1, so that the batch may be empty.
  const auto shape = onnx::sides_of(y, 0, 4);
  const auto cells = onnx::side_of(y, 2) * onnx::side_of(y, 3);
  const auto groups = onnx::concat({onnx::side_of(y, 0), g.ints({groups_}),
                                    cells * static_cast<double>(weight_.numel() / groups_)},
                                   0);
  const auto one = at::ones({groups_});
  y = g.add("InstanceNormalization",
            {onnx::reshape(y, groups), g.constant(one, "one"), g.constant(one - one, "zero")},
            {{"epsilon", epsilon}});
  const auto by_channel = [&](const at::Tensor& values) {
    return onnx::unsqueeze(g.parameter(values), {1, 2});
  };
  return finish(onnx::reshape(y, shape) * by_channel(weight_) + by_channel(bias_), after);
}

at::Tensor ConvNorm::group_norm(const at::Tensor& y, const After& after) const {
  return finish(at::group_norm(y, groups_, weight_, bias_, norm_.epsilon), after);
}

at::Tensor ConvNorm::batch_norm(const at::Tensor& y, const NormMode& asked,
                                const After& after) const {
  // If scale and shift are frozen, so are the statistics: otherwise they would change a layer that
  // is not trained any more.
  const bool is_frozen = !weight_.requires_grad() && !bias_.requires_grad();
  const auto mode = is_frozen ? NormMode{} : asked;
  const BatchNormTensors tensors{weight_, bias_, mean_, var_};
  if (norm_.kind == Norm::sync_bn && mode.training && mode.ranks)
    return finish(sync_batch_norm(y, tensors, norm_.momentum, norm_.epsilon, *mode.ranks), after);
  // A single value per channel has no variance, and would turn running statistics into NaN for
  // good. A pass without gradients, such as a step's first pass for its totals, does not update
  // them either.
  const bool follows = !mode.training || (y.numel() > y.size(1) && at::GradMode::is_enabled());
  if (mode.training && after.activation == Activation::silu && !after.add.defined())
    return batch_norm_silu(y, tensors, norm_.momentum, norm_.epsilon, follows);
  return finish(at::batch_norm(y, weight_, bias_, follows ? mean_ : at::Tensor(),
                               follows ? var_ : at::Tensor(), mode.training, norm_.momentum,
                               norm_.epsilon, false),
                after);
}

at::Tensor ConvNorm::frozen(const at::Tensor& x, const After& after) const {
  const auto with = [&](const at::Tensor& weight, const Folded& folded, const at::Tensor& scale) {
    return convolve(x, {weight, scale, folded.shift, conv_.stride, conv_.padding, conv_.groups},
                    after);
  };
  const bool affine_trained = weight_.requires_grad();
  if (affine_trained && at::GradMode::is_enabled()) {  // the folded weight is part of the graph
    const auto folded = fold();
    return with(conv_.weight * folded.scale.view({-1, 1, 1, 1}), folded, {});
  }
  const auto folded = [&] {
    static std::mutex folding;  // micro-batches run concurrently
    const std::lock_guard lock(folding);
    if (!folded_ || affine_trained || folded_->changes != parameters_->changes()) folded_ = fold();
    if (!conv_.weight.requires_grad() && !folded_->weight.defined())
      folded_->weight = conv_.weight * folded_->scale.view({-1, 1, 1, 1});
    return *folded_;
  }();
  if (conv_.weight.requires_grad()) return with(conv_.weight, folded, folded.scale);
  return with(folded.weight, folded, {});
}

}  // namespace millrace
