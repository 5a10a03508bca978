// Stochastic gradient descent with momentum.
#pragma once

#include "millrace/trainer/optimizer/optimizer.h"

namespace millrace {

/// Follows torch.optim.SGD with dampening 0: d = g + decay v; m = momentum m + d; v -= lr m
/// (nesterov: v -= lr (d + momentum m)). Keeps m, under the parameters' own names.
///
/// With `trust`, the d of each weight (not of biases and normalisations) is multiplied by
/// r = trust_coefficient |v| / (|g| + decay |v|), or 1 where v or g is 0: LARS (You et al. 2017).
/// LARC (NVIDIA's Apex) takes min(r / lr, 1), so that no weight's rate, lr times that, is above lr.
class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const OptimizerOptions& options);

 private:
  void update(const Work& work, double lr) override;
  /// Puts decay and ratio into the gradients.
  void apply_trust(const Work& work, double lr, double decay) const;
};

}  // namespace millrace
