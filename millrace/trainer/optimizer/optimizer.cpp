#include "millrace/trainer/optimizer/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/trainer/detector/restore.h"

namespace millrace {
namespace {

/// The gradient in the layout of its value, as the fused kernels need it.
at::Tensor aligned_gradient(const at::Tensor& value) {
  const auto& gradient = value.grad();
  if (gradient.strides() == value.strides() && gradient.scalar_type() == value.scalar_type())
    return gradient;
  return at::empty_like(value).copy_(gradient);
}

/// Stochastic gradient descent, as torch.optim.SGD with dampening 0: d = g + decay v;
/// m = momentum m + d; v -= lr m (nesterov: v -= lr (d + momentum m)). Keeps m, under the
/// parameters' own names.
///
/// With `trust`, the d of each weight (not of biases and normalisations) is multiplied by
/// r = trust_coefficient |v| / (|g| + decay |v|), or 1 where v or g is 0: LARS (You et al. 2017).
/// LARC (NVIDIA's Apex) takes min(r / lr, 1), so that no weight's rate, lr times that, is above lr.
class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const OptimizerOptions& options)
      : Optimizer(parameters, options, {{.ending = ""}}) {}

 private:
  void update(const Work& work, double lr) override {
    double decay = work.group->weight_decay(options());
    if (work.group->trusted) {
      apply_trust(work, lr, decay);
      decay = 0;
    }
    at::TensorList momenta = work.kept[0];
    if (options().momentum == 0) {  // if it rises while training, it starts from 0
      at::_foreach_zero_(momenta);
      momenta = {};
    }
    at::_fused_sgd_(work.values, work.gradients, momenta, decay, options().momentum, lr,
                    /*dampening=*/0, options().nesterov, /*maximize=*/false,
                    /*is_first_step=*/false);
  }

  /// Applies decay and ratio to the gradients.
  void apply_trust(const Work& work, double lr, double decay) const {
    const auto all = norms(work.values);
    std::vector<at::Scalar> ratios;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double gradient = work.gradient_norms[i], most = options().trust_coefficient * all[i];
      double ratio = all[i] > 0 && gradient > 0 ? most / (gradient + decay * all[i]) : 1;
      if (options().trust == "larc") ratio = std::min(ratio / lr, 1.0);
      ratios.emplace_back(ratio);
    }
    at::_foreach_add_(work.gradients, work.values, decay);
    at::_foreach_mul_(work.gradients, ratios);
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim.AdamW: v -= lr
/// decay v; m and s, the running means of g and g^2 with shares `momentum` (beta1) and `beta2`,
/// each divided by 1 - share^steps; v -= lr m / (sqrt(s) + epsilon). Keeps NAME.mean, NAME.square
/// and NAME.steps, the steps that the parameter has taken.
class AdamW final : public Optimizer {
 public:
  AdamW(const Parameters& parameters, const OptimizerOptions& options)
      : Optimizer(
            parameters, options,
            {{.ending = ".mean"}, {.ending = ".square"}, {.ending = ".steps", .is_number = true}}) {
  }

 private:
  void update(const Work& work, double lr) override {
    const auto& [mean, square, steps] = std::tie(work.kept[0], work.kept[1], work.kept[2]);
    at::_foreach_add_(steps, at::Scalar(1));
    at::_fused_adamw_(work.values, work.gradients, mean, square, /*max_exp_avg_sqs=*/{}, steps, lr,
                      options().momentum, options().beta2, work.group->weight_decay(options()),
                      options().epsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
};

}  // namespace

Optimizer::Optimizer(const Parameters& parameters, const OptimizerOptions& options,
                     std::vector<Kept> kept)
    : options_(options), groups_(group_parameters(parameters, options)), kept_(std::move(kept)) {
  for (const auto& group : groups_) {
    auto& of_group = tensors_.emplace_back();
    for (const auto& [ending, is_number] : kept_) {
      auto& tensors = of_group.emplace_back();
      for (const auto& value : group.values)
        tensors.push_back(is_number ? at::zeros({}, value.options().requires_grad(false))
                                    : at::zeros_like(value.detach()));
    }
  }
}

OptimizerStep Optimizer::step(double lr, double scale) {
  const c10::NoGradGuard no_graph;
  auto work = gather();
  std::vector<at::Tensor> all;
  for (const auto& part : work) all.insert(all.end(), part.gradients.begin(), part.gradients.end());
  if (all.empty()) return {};
  if (scale != 1) at::_foreach_mul_(all, at::Scalar(1 / scale));
  const auto result = measure(work, all);
  if (result.not_finite.empty()) {
    clip(work, all, result.gradient_norm);
    for (const auto& part : work) update(part, lr * part.group->lr_factor);
  }
  clear_gradients();
  return result;
}

std::vector<Optimizer::Work> Optimizer::gather() const {
  std::vector<Work> work;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto& group = groups_[g];
    Work part{.group = &group, .kept = std::vector<std::vector<at::Tensor>>(kept_.size())};
    for (std::size_t i = 0; i < group.values.size(); ++i) {
      if (!group.values[i].grad().defined()) continue;
      part.names.push_back(group.names[i]);
      part.values.push_back(group.values[i]);
      part.gradients.push_back(aligned_gradient(group.values[i]));
      for (std::size_t k = 0; k < kept_.size(); ++k) part.kept[k].push_back(tensors_[g][k][i]);
    }
    if (!part.values.empty()) work.push_back(std::move(part));
  }
  return work;
}

std::vector<double> Optimizer::norms(at::TensorList tensors) const {
  const auto together = at::stack(at::_foreach_norm(tensors)).to(at::kCPU, at::kDouble);
  const auto* first = together.const_data_ptr<double>();
  std::vector<double> norms(first, first + together.numel());
  if (agree_) agree_(norms);
  return norms;
}

OptimizerStep Optimizer::measure(std::vector<Work>& work, at::TensorList gradients) const {
  OptimizerStep result;
  const auto all = norms(gradients);
  auto norm = all.begin();
  for (auto& part : work)
    for (const auto& name : part.names) {
      if (!std::isfinite(*norm) && result.not_finite.empty()) result.not_finite = name;
      result.gradient_norm += *norm * *norm;
      part.gradient_norms.push_back(*norm++);
    }
  result.gradient_norm = std::sqrt(result.gradient_norm);
  return result;
}

void Optimizer::clip(std::vector<Work>& work, at::TensorList gradients, double norm) const {
  if (options_.clip_norm > 0 && norm > options_.clip_norm) {
    const double share = options_.clip_norm / norm;
    at::_foreach_mul_(gradients, at::Scalar(share));
    for (auto& part : work)
      for (auto& own : part.gradient_norms) own *= share;
  }
  if (options_.clip_value > 0) {
    at::_foreach_clamp_min_(gradients, at::Scalar(-options_.clip_value));
    at::_foreach_clamp_max_(gradients, at::Scalar(options_.clip_value));
  }
}

void Optimizer::clear_gradients() {
  for (auto& group : groups_)
    for (auto& value : group.values) value.mutable_grad().reset();
}

NamedTensors Optimizer::state() const {
  NamedTensors all;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    for (std::size_t k = 0; k < kept_.size(); ++k)
      for (std::size_t i = 0; i < groups_[g].names.size(); ++i)
        all.emplace_back(groups_[g].names[i] + kept_[k].ending, tensors_[g][k][i]);
  return all;
}

void Optimizer::load(const NamedTensors& saved) {
  const auto living = state();
  std::set<std::string> names;
  for (const auto& [name, tensor] : saved) names.insert(name);
  const bool nothing_fits =
      std::ranges::none_of(living, [&](const auto& own) { return names.contains(own.first); });
  if (nothing_fits && !living.empty() && !saved.empty())
    throw Error(fmt::format(
        "the checkpoint's optimizer kept other tensors ('{}') than optimizer.type = \"{}\" does "
        "('{}'): resume with the type that it was trained with, or start a new run with "
        "model.weights naming the checkpoint's model.safetensors",
        saved[0].first, options_.type, living[0].first));
  restore(living, saved, "the optimizer");
}

std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options) {
  if (options.type == "adamw") return std::make_unique<AdamW>(parameters, options);
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace millrace
