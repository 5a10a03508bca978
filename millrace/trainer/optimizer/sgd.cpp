#include "millrace/trainer/optimizer/sgd.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_sgd.h>

#include <algorithm>

namespace millrace {

Sgd::Sgd(const Parameters& parameters, const OptimizerOptions& options)
    : Optimizer(parameters, options, {{.ending = ""}}) {}

void Sgd::update(const Work& work, double lr) {
  double decay = work.group->weight_decay(options());
  if (work.group->trusted) {
    apply_trust(work, lr, decay);
    decay = 0;
  }
  at::TensorList momenta = work.kept[0];
  if (options().momentum == 0) {  // it may rise while training: from 0, whatever it was before
    at::_foreach_zero_(momenta);
    momenta = {};
  }
  at::_fused_sgd_(work.values, work.gradients, momenta, decay, options().momentum, lr,
                  /*dampening=*/0, options().nesterov, /*maximize=*/false, /*is_first_step=*/false);
}

void Sgd::apply_trust(const Work& work, double lr, double decay) const {
  const auto all = norms(work.values);
  auto value = all.begin();
  std::vector<at::Scalar> ratios;
  for (const double gradient : work.gradient_norms) {
    const double most = options().trust_coefficient * *value;
    double ratio = *value > 0 && gradient > 0 ? most / (gradient + decay * *value) : 1;
    if (options().trust == "larc") ratio = std::min(ratio / lr, 1.0);
    ratios.emplace_back(ratio);
    ++value;
  }
  at::_foreach_add_(work.gradients, work.values, decay);
  at::_foreach_mul_(work.gradients, ratios);
}

}  // namespace millrace
