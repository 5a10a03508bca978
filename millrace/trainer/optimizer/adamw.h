// Adam with decoupled weight decay (Loshchilov and Hutter 2019).
#pragma once

#include "millrace/trainer/optimizer/optimizer.h"

namespace millrace {

/// Follows torch.optim.AdamW: v -= lr decay v; m and s, the running means of g and g^2 with shares
/// `momentum` (beta1) and `beta2`, each divided by 1 - share^steps; v -= lr m / (sqrt(s) +
/// epsilon). Keeps NAME.mean, NAME.square and NAME.steps, the steps that the parameter has taken.
class AdamW final : public Optimizer {
 public:
  AdamW(const Parameters& parameters, const OptimizerOptions& options);

 private:
  void update(const Work& work, double lr) override;
};

}  // namespace millrace
