// What turns gradients into new values: SGD or AdamW.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/trainer/optimizer/optimizer_options.h"
#include "millrace/trainer/optimizer/parameter_groups.h"
#include "millrace/weights/parameters.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

/// What became of one step.
struct OptimizerStep {
  double gradient_norm = 0;  // over all gradients, before clipping
  // First parameter whose gradient is NaN or infinite; then nothing was changed
  std::string not_finite;
};

/// Borrows the parameters' tensors; one thread at a time. Values, gradients and state are fp32 in
/// any precision of the step: these are the master weights.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Sets momentum, weight decay (except a group's own) and clipping from the next step on.
  void set_options(const OptimizerOptions& options) { options_ = options; }

  /// Applies the gradients divided by `scale` at rate `lr`, and clears them. Parameters without a
  /// gradient are left alone.
  OptimizerStep step(double lr, double scale = 1);

  void clear_gradients();

  /// Passes norms through `agree` before they decide anything: ranks may round them differently.
  void agree_on_norms(std::function<void(std::vector<double>&)> agree) {
    agree_ = std::move(agree);
  }

  /// What it keeps of every trained parameter, under names that begin with the parameter's; shared,
  /// not copied.
  NamedTensors state() const;

  /// Copies a state back. Throws Error naming what is missing or has another shape.
  void load(const NamedTensors& state);

 protected:
  /// State of each parameter, 0 at first: a tensor like its value, or one number.
  struct Kept {
    std::string ending;  // of its name in `state`, after the parameter's
    bool is_number = false;
  };

  Optimizer(const Parameters& parameters, const OptimizerOptions& options, std::vector<Kept> kept);

  /// The parameters of a group that have a gradient in this step.
  struct Work {
    const ParameterGroup* group;
    std::vector<std::string> names;
    std::vector<at::Tensor> values, gradients;
    std::vector<double> gradient_norms;         // after clipping by norm
    std::vector<std::vector<at::Tensor>> kept;  // by Kept, then as `names`
  };

  const OptimizerOptions& options() const { return options_; }

  std::vector<double> norms(at::TensorList tensors) const;

 private:
  virtual void update(const Work& work, double lr) = 0;

  std::vector<Work> gather() const;
  OptimizerStep measure(std::vector<Work>& work, at::TensorList gradients) const;
  void clip(std::vector<Work>& work, at::TensorList gradients, double norm) const;

  OptimizerOptions options_;
  std::function<void(std::vector<double>&)> agree_;
  std::vector<ParameterGroup> groups_;
  std::vector<Kept> kept_;
  std::vector<std::vector<std::vector<at::Tensor>>> tensors_;  // by group, Kept, parameter
};

/// The optimizer that `options.type` names. Throws ConfigError for a rule that fits no parameter.
std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options);

}  // namespace millrace
