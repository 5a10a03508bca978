// Stochastic gradient descent with momentum: the step that turns gradients into new values.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "trainer/parameters.h"
#include "trainer/safetensors.h"

namespace millrace {

struct OptimizerOptions {
  double lr = 0.02;  // at `lr_batch` images a step; scaled linearly to the real number
  std::int64_t lr_batch = 16;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  double weight_decay_bias = -1;  // < 0: as weight_decay
  double weight_decay_norm = 0;
  double bias_lr_factor = 1;
  double clip_norm = 0;  // of all gradients together; 0: none

  void describe(Options& o);

  /// The rate for steps of so many images.
  double scaled_lr(std::int64_t images_per_step) const {
    return lr * static_cast<double>(images_per_step) / static_cast<double>(lr_batch);
  }
};

/// What became of one step.
struct SgdStep {
  double gradient_norm = 0;  // over all gradients, before clipping
  std::string
      not_finite;  // first parameter whose gradient is NaN or infinite; then nothing was changed
};

/// Follows torch.optim.SGD with dampening 0: d = g + decay v; m = momentum m + d; v -= lr m
/// (nesterov: v -= lr (d + momentum m)). Borrows the parameters' tensors; one thread at a time.
class Sgd {
 public:
  Sgd(const Parameters& parameters, const OptimizerOptions& options);

  /// From the next step on: the rates of decay, momentum and clipping. Groups of parameters stay as they are.
  void set_options(const OptimizerOptions& options) { options_ = options; }

  /// Applies the gradients at rate `lr` and clears them; they are `scale` times what they should be.
  /// Parameters without a gradient are left alone.
  SgdStep step(double lr, double scale = 1);

  void clear_gradients();

  /// The momentum of every trained parameter, under its name. Tensors are shared, not copied.
  NamedTensors state() const;

  /// Copies momentum back. Throws Error naming what is missing or has another shape.
  void load(const NamedTensors& state);

 private:
  /// Parameters under one rule.
  struct Group {
    double weight_decay = 0;
    double lr_factor = 1;
    std::vector<std::string> names;
    std::vector<at::Tensor> values, momenta;  // no momenta where momentum is 0
  };

  /// What of a group has a gradient in this step.
  struct Work {
    const Group* rule;
    std::vector<std::string> names;
    std::vector<at::Tensor> values, gradients, momenta;
  };

  Group& group_for(const Parameter& parameter);
  std::vector<Work> gather() const;

  OptimizerOptions options_;
  std::vector<Group> groups_;
};

}  // namespace millrace
