#include "millrace/trainer/optimizer/adamw.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>

#include <tuple>

namespace millrace {

AdamW::AdamW(const Parameters& parameters, const OptimizerOptions& options)
    : Optimizer(
          parameters, options,
          {{.ending = ".mean"}, {.ending = ".square"}, {.ending = ".steps", .is_number = true}}) {}

void AdamW::update(const Work& work, double lr) {
  const auto& [mean, square, steps] = std::tie(work.kept[0], work.kept[1], work.kept[2]);
  at::_foreach_add_(steps, at::Scalar(1));
  at::_fused_adamw_(work.values, work.gradients, mean, square, /*max_exp_avg_sqs=*/{}, steps, lr,
                    options().momentum, options().beta2, work.group->weight_decay(options()),
                    options().epsilon, /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace millrace
