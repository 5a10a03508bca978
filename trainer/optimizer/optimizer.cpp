#include "millrace/trainer/optimizer/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/models/detector/restore.h"

namespace millrace {
namespace {

/// Returns true if the elements of both have the same order in memory. Strides of dimensions of
/// size 1 may differ.
bool lie_alike(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t i = 0; i < a.dim(); ++i)
    if (a.size(i) != 1 && a.stride(i) != b.stride(i)) return false;
  return true;
}

/// Returns the gradient in the layout of its value, which the fused kernels require.
at::Tensor aligned_gradient(const at::Tensor& value) {
  const auto& gradient = value.grad();
  if (gradient.scalar_type() == value.scalar_type()) {
    if (gradient.strides() == value.strides()) return gradient;
    if (lie_alike(gradient, value)) return gradient.as_strided(value.sizes(), value.strides());
  }
  return at::empty_like(value).copy_(gradient);
}

/// Returns views of the same memory in one dimension. On a CPU, libtorch's fused kernels first make
/// a contiguous copy of each gradient (a transposition if it is channels last), which they never
/// read.
std::vector<at::Tensor> in_one_dimension(std::vector<at::Tensor> gradients) {
  for (auto& gradient : gradients)
    if (gradient.is_cpu() && !gradient.is_contiguous())
      gradient = gradient.as_strided({gradient.numel()}, {1});
  return gradients;
}

/// Stochastic gradient descent like torch.optim.SGD with dampening 0: d = g + decay v; m = momentum
/// m + d; v -= lr m (nesterov: v -= lr (d + momentum m)). Its state is m, under the parameters' own
/// names.
///
/// With `trust`, the d of each weight (not of biases and normalizations) is multiplied by r =
/// trust_coefficient |v
/// / (|g
/// + decay |v|), or 1 if v or g is 0: LARS (You et al. 2017). LARC (NVIDIA's Apex) uses min(r / lr,
/// 1) instead, so that no weight's effective rate exceeds lr.
class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const OptimizerOptions& options)
      : Optimizer(parameters, options, {{.ending = ""}}) {}

 private:
  void update(const Work& work, double lr, const OnDevice& decided) override {
    double decay = work.group->weight_decay(options());
    if (work.group->trusted) {
      apply_trust(work, lr, decay);
      decay = 0;
    }
    at::TensorList momenta = work.kept[0];
    if (options().momentum == 0) {  // starts from 0 if momentum is raised during training
      if (decided.bad)
        at::_foreach_mul_(momenta, *decided.bad);
      else
        at::_foreach_zero_(momenta);
      momenta = {};
    }
    at::_fused_sgd_(work.values, in_one_dimension(work.gradients), momenta, decay,
                    options().momentum, lr,
                    /*dampening=*/0, options().nesterov, /*maximize=*/false,
                    /*is_first_step=*/false, decided.divisor, decided.bad);
  }

  /// Applies weight decay and the ratio r to the gradients.
  void apply_trust(const Work& work, double lr, double decay) const {
    std::vector<at::Scalar> ratios;
    for (std::size_t i = 0; i < work.values.size(); ++i) {
      const double value = work.value_norms[i], gradient = work.gradient_norms[i];
      const double most = options().trust_coefficient * value;
      double ratio = value > 0 && gradient > 0 ? most / (gradient + decay * value) : 1;
      if (options().trust == Trust::larc) ratio = std::min(ratio / lr, 1.0);
      ratios.emplace_back(ratio);
    }
    at::_foreach_add_(work.gradients, work.values, decay);
    at::_foreach_mul_(work.gradients, ratios);
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019), like torch.optim.AdamW: v -= lr
/// decay v; m and s are the running means of g and g^2 with factors `momentum` (beta1) and `beta2`,
/// each divided by 1 - factor^steps; v -= lr m / (sqrt(s) + epsilon). Its state is NAME.mean,
/// NAME.square and NAME.steps, the number of steps of the parameter.
class AdamW final : public Optimizer {
 public:
  AdamW(const Parameters& parameters, const OptimizerOptions& options)
      : Optimizer(
            parameters, options,
            {{.ending = ".mean"}, {.ending = ".square"}, {.ending = ".steps", .is_number = true}}) {
  }

 private:
  void update(const Work& work, double lr, const OnDevice& decided) override {
    const auto& [mean, square, steps] = std::tie(work.kept[0], work.kept[1], work.kept[2]);
    if (decided.bad)
      at::_foreach_add_(steps, 1 - *decided.bad);
    else
      at::_foreach_add_(steps, at::Scalar(1));
    at::_fused_adamw_(work.values, in_one_dimension(work.gradients), mean, square,
                      /*max_exp_avg_sqs=*/{}, steps, lr, options().momentum, options().beta2,
                      work.group->weight_decay(options()), options().epsilon, /*amsgrad=*/false,
                      /*maximize=*/false, decided.divisor, decided.bad);
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
  for (const auto& parameter : parameters)
    if (!parameter.trainable())
      for (const auto& [ending, is_number] : kept_) frozen_.insert(parameter.name + ending);
}

at::Tensor Optimizer::measure(double scale) {
  const c10::NoGradGuard no_graph;
  work_ = gather();
  const auto all = gradients();
  if (all.empty()) return at::empty({0});
  if (scale != 1) at::_foreach_mul_(all, at::Scalar(1 / scale));
  auto norms = at::_foreach_norm(all);
  for (const auto& part : work_) {
    if (!part.group->trusted) continue;
    const auto own = at::_foreach_norm(part.values);
    norms.insert(norms.end(), own.begin(), own.end());
  }
  return at::stack(norms);
}

OptimizerStep Optimizer::apply(double lr, std::span<const double> measured) {
  const c10::NoGradGuard no_graph;
  const auto result = outcome(measured);
  if (result.not_finite.empty()) {
    take_norms(measured);
    drop_what_has_no_gradient();
    clip(result.gradient_norm);
    clip_values();
    for (const auto& part : work_) update(part, lr * part.group->lr_factor, {});
  }
  clear_gradients();
  return result;
}

void Optimizer::apply_unless(const at::Tensor& bad, double lr, const at::Tensor& measured) {
  const c10::NoGradGuard no_graph;
  OnDevice decided{.divisor = {}, .bad = bad};
  if (options_.clip_norm > 0 && measured.numel() > 0) {
    const auto norm =
        at::linalg_vector_norm(measured, 2, /*dim=*/{}, /*keepdim=*/false, at::kDouble);
    decided.divisor = (norm / options_.clip_norm).clamp_min(1).to(at::kFloat);
  }
  if (options_.clip_value > 0) {
    if (const auto divisor = std::exchange(decided.divisor, {}))
      at::_foreach_div_(gradients(), *divisor);
    clip_values();
  }
  for (const auto& part : work_) update(part, lr * part.group->lr_factor, decided);
  clear_gradients();
}

OptimizerStep Optimizer::outcome(std::span<const double> measured) const {
  OptimizerStep result;
  auto norm = measured.begin();
  for (const auto& part : work_)
    for (const auto& name : part.names) {
      if (norm == measured.end())
        throw std::invalid_argument("fewer norms given than the optimizer measured");
      if (!std::isfinite(*norm) && result.not_finite.empty()) result.not_finite = name;
      result.gradient_norm += *norm * *norm;
      ++norm;
    }
  result.gradient_norm = std::sqrt(result.gradient_norm);
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

std::vector<at::Tensor> Optimizer::gradients() const {
  std::vector<at::Tensor> all;
  for (const auto& part : work_)
    all.insert(all.end(), part.gradients.begin(), part.gradients.end());
  return all;
}

void Optimizer::take_norms(std::span<const double> measured) {
  auto norm = measured.begin();
  const auto take = [&](std::vector<double>& norms, std::size_t count) {
    if (static_cast<std::size_t>(measured.end() - norm) < count)
      throw std::invalid_argument("fewer norms given than the optimizer measured");
    norms.assign(norm, norm + static_cast<std::ptrdiff_t>(count));
    norm += static_cast<std::ptrdiff_t>(count);
  };
  for (auto& part : work_) take(part.gradient_norms, part.names.size());
  for (auto& part : work_)
    if (part.group->trusted) take(part.value_norms, part.names.size());
}

void Optimizer::drop_what_has_no_gradient() {
  for (auto& part : work_)
    for (std::size_t i = part.names.size(); i-- > 0;) {
      if (part.values[i].grad().defined()) continue;
      const auto drop = [i](auto& list) {
        if (!list.empty()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      };
      drop(part.names), drop(part.values), drop(part.gradients);
      drop(part.gradient_norms), drop(part.value_norms);
      for (auto& kept : part.kept) drop(kept);
    }
  std::erase_if(work_, [](const Work& part) { return part.names.empty(); });
}

void Optimizer::clip(double norm) {
  if (options_.clip_norm <= 0 || norm <= options_.clip_norm) return;
  const double share = options_.clip_norm / norm;
  at::_foreach_mul_(gradients(), at::Scalar(share));
  for (auto& part : work_)
    for (auto& own : part.gradient_norms) own *= share;
}

void Optimizer::clip_values() {
  if (options_.clip_value <= 0) return;
  const auto all = gradients();
  at::_foreach_clamp_min_(all, at::Scalar(-options_.clip_value));
  at::_foreach_clamp_max_(all, at::Scalar(options_.clip_value));
}

void Optimizer::clear_gradients() {
  for (auto& group : groups_)
    for (auto& value : group.values) value.mutable_grad().reset();
  for (auto& part : work_) part.gradients.clear();
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
  NamedTensors living, fresh, fitting;
  std::set<std::string> saved_names, own_names;
  for (const auto& [name, tensor] : saved) saved_names.insert(name);
  for (const auto& own : state()) {
    own_names.insert(own.first);
    (saved_names.contains(own.first) ? living : fresh).push_back(own);
  }
  std::vector<std::string> dropped;
  for (const auto& one : saved) {
    const bool is_frozen = frozen_.contains(one.first) && !own_names.contains(one.first);
    if (is_frozen)
      dropped.push_back(one.first);
    else
      fitting.push_back(one);
  }
  if (living.empty() && !fresh.empty() && !fitting.empty())
    throw Error(
        fmt::format("the checkpoint contains other optimizer tensors ('{}') than optimizer.type = "
                    "\"{}\" uses ('{}'); resume with the type of the checkpoint, or start a new "
                    "run with the checkpoint's model.safetensors as model.weights",
                    fitting[0].first, value_name(options_.type), fresh[0].first));
  restore(saved.empty() ? state() : living, fitting, "the optimizer");
  for (auto& [name, tensor] : fresh) tensor.zero_();
  const auto parameters = [&](std::size_t tensors) {
    return counted(static_cast<std::int64_t>(tensors / kept_.size()), "parameter");
  };
  if (!dropped.empty())
    log_info("no longer trained: {} ('{}', ...); dropped their optimizer state",
             parameters(dropped.size()), dropped[0]);
  if (!fresh.empty())
    log_info("newly trained: {} ('{}', ...); their optimizer state starts at 0",
             parameters(fresh.size()), fresh[0].first);
}

std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options) {
  if (options.type == OptimizerType::adamw) return std::make_unique<AdamW>(parameters, options);
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace millrace
