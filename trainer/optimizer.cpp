#include "trainer/optimizer.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "trainer/restore.h"

namespace millrace {
namespace {

/// The gradient in the memory layout of its value, which the fused kernels walk in step.
at::Tensor aligned_gradient(const at::Tensor& value) {
  const auto& gradient = value.grad();
  if (gradient.strides() == value.strides() && gradient.scalar_type() == value.scalar_type())
    return gradient;
  return at::empty_like(value).copy_(gradient);
}

}  // namespace

void OptimizerOptions::describe(Options& o) {
  o.add("lr", lr, "learning rate at lr_batch images a step; scaled linearly", {.min = 0});
  o.add("lr_batch", lr_batch, "images a step that lr is meant for", {.min = 1, .unit = "images"});
  o.add("momentum", momentum, "share of the last direction that is kept", {.min = 0, .max = 1});
  o.add("nesterov", nesterov, "look one step of momentum ahead");
  o.add("weight_decay", weight_decay, "of weights", {.min = 0});
  o.add("weight_decay_bias", weight_decay_bias, "of biases; negative: as weight_decay");
  o.add("weight_decay_norm", weight_decay_norm, "of normalisations' scale and shift", {.min = 0});
  o.add("bias_lr_factor", bias_lr_factor, "biases learn faster by this factor", {.min = 0});
  o.add("clip_norm", clip_norm, "largest norm of all gradients together; 0: any", {.min = 0});
}

Sgd::Sgd(const Parameters& parameters, const OptimizerOptions& options) : options_(options) {
  for (const auto& parameter : parameters) {
    if (!parameter.trainable()) continue;
    auto& group = group_for(parameter);
    group.names.push_back(parameter.name);
    group.values.push_back(parameter.value);
    if (options.momentum > 0) group.momenta.push_back(at::zeros_like(parameter.value.detach()));
  }
}

Sgd::Group& Sgd::group_for(const Parameter& parameter) {
  const bool bias = parameter.kind == ParameterKind::bias;
  double decay = options_.weight_decay;
  if (bias && options_.weight_decay_bias >= 0) decay = options_.weight_decay_bias;
  if (parameter.kind == ParameterKind::norm) decay = options_.weight_decay_norm;
  const double lr_factor = bias ? options_.bias_lr_factor : 1;
  for (auto& group : groups_)
    if (group.weight_decay == decay && group.lr_factor == lr_factor) return group;
  return groups_.emplace_back(Group{decay, lr_factor, {}, {}, {}});
}

SgdStep Sgd::step(double lr, double scale) {
  const c10::NoGradGuard no_graph;
  const auto work = gather();

  SgdStep result;
  std::vector<at::Tensor> all;
  for (const auto& group : work)
    all.insert(all.end(), group.gradients.begin(), group.gradients.end());
  if (all.empty()) return result;
  if (scale != 1) at::_foreach_mul_(all, at::Scalar(1 / scale));
  const auto norms = at::stack(at::_foreach_norm(all)).to(at::kCPU, at::kDouble);
  const auto* norm = norms.const_data_ptr<double>();
  for (const auto& group : work)
    for (const auto& name : group.names) {
      if (!std::isfinite(*norm) && result.not_finite.empty()) result.not_finite = name;
      result.gradient_norm += *norm * *norm;
      ++norm;
    }
  result.gradient_norm = std::sqrt(result.gradient_norm);

  if (result.not_finite.empty()) {
    if (options_.clip_norm > 0 && result.gradient_norm > options_.clip_norm)
      at::_foreach_mul_(all, at::Scalar(options_.clip_norm / result.gradient_norm));
    for (const auto& group : work)
      at::_fused_sgd_(group.values, group.gradients, group.momenta, group.rule->weight_decay,
                      options_.momentum, lr * group.rule->lr_factor, /*dampening=*/0,
                      options_.nesterov, /*maximize=*/false, /*is_first_step=*/false);
  }
  clear_gradients();
  return result;
}

std::vector<Sgd::Work> Sgd::gather() const {
  std::vector<Work> work;
  for (const auto& group : groups_) {
    Work part{&group, {}, {}, {}, {}};
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      if (!group.values[i].grad().defined()) continue;
      part.names.push_back(group.names[i]);
      part.values.push_back(group.values[i]);
      part.gradients.push_back(aligned_gradient(group.values[i]));
      if (!group.momenta.empty()) part.momenta.push_back(group.momenta[i]);
    }
    if (!part.values.empty()) work.push_back(std::move(part));
  }
  return work;
}

void Sgd::clear_gradients() {
  for (auto& group : groups_)
    for (auto& value : group.values) value.mutable_grad().reset();
}

NamedTensors Sgd::state() const {
  NamedTensors tensors;
  for (const auto& group : groups_)
    for (std::size_t i = 0; i < group.momenta.size(); ++i)
      tensors.emplace_back(group.names[i], group.momenta[i]);
  return tensors;
}

void Sgd::load(const NamedTensors& saved) { restore(state(), saved, "the optimizer's momentum"); }

}  // namespace millrace
