// Optimizers, which update parameters by their gradients: SGD and AdamW.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/optimizer/optimizer_options.h"
#include "millrace/trainer/optimizer/parameter_groups.h"

namespace millrace {

/// Outcome of one step.
struct OptimizerStep {
  double gradient_norm = 0;  // norm over all gradients, before clipping
  // Name of the first parameter whose gradient is NaN or infinite; empty = none. If there is one,
  // the step changed nothing.
  std::string not_finite;
};

/// Base class of optimizers. Borrows the parameters' tensors; for one thread at a time. Values,
/// gradients and state are fp32 for any precision of the step: the values are the master weights.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// Sets momentum, weight decay (except of groups with their own) and clipping from the next step
  /// on.
  void set_options(const OptimizerOptions& options) { options_ = options; }

  /// First half of a step: divides the gradients by `scale` and queues the numbers that the second
  /// half needs, as a one-dimensional tensor on the gradients' device: the norm of each gradient,
  /// then, with `trust`, the norm of each weight that it applies to. Empty if no parameter has a
  /// gradient.
  at::Tensor measure(double scale = 1);

  /// Second half, with the numbers of measure() on the host: clips, applies and clears the
  /// gradients, or changes nothing if one is not finite. Parameters that have lost their gradient
  /// since then do not change. Throws std::invalid_argument if there are too few numbers.
  OptimizerStep apply(double lr, std::span<const double> measured);

  /// Second half without waiting for the device, which decides by `measured` itself. `bad`: one
  /// fp32 number on the device; 1 = change nothing, else 0. Not available if needs_host().
  void apply_unless(const at::Tensor& bad, double lr, const at::Tensor& measured);

  /// Returns the outcome of apply_unless(), given the numbers of measure() on the host.
  OptimizerStep outcome(std::span<const double> measured) const;

  /// Returns true if the second half needs the numbers on the host: with LARS and LARC.
  bool needs_host() const { return options_.trust != Trust::none; }

  void clear_gradients();

  /// State of every trained parameter, under names that begin with the parameter's name. Shares the
  /// tensors.
  NamedTensors state() const;

  /// Loads a state. State of parameters that are now frozen is dropped, and state of parameters
  /// that were frozen starts at 0; both are logged. Throws Error naming a tensor that is unknown or
  /// has another shape.
  void load(const NamedTensors& state);

 protected:
  /// A state of each parameter, 0 at first: a tensor like its value, or one number.
  struct Kept {
    std::string ending;  // suffix of its name in `state`, after the parameter's name
    bool is_number = false;
  };

  Optimizer(const Parameters& parameters, const OptimizerOptions& options, std::vector<Kept> kept);

  /// The parameters of a group that have a gradient in this step.
  struct Work {
    const ParameterGroup* group;
    std::vector<std::string> names;
    std::vector<at::Tensor> values, gradients;
    std::vector<double> gradient_norms;  // norms after clipping by norm; only available in apply()
    std::vector<double> value_norms;  // norms of the values with `trust`; only available in apply()
    std::vector<std::vector<at::Tensor>> kept;  // states by Kept, then in the order of `names`
  };

  /// Decisions of the device, as fp32 numbers on it; empty if the host has decided.
  struct OnDevice {
    std::optional<at::Tensor> divisor;  // divisor of the gradients, at least 1; clips their norm
    std::optional<at::Tensor> bad;      // 1 = change nothing, else 0
  };

  const OptimizerOptions& options() const { return options_; }

 private:
  virtual void update(const Work& work, double lr, const OnDevice& decided) = 0;

  std::vector<Work> gather() const;
  void take_norms(std::span<const double> measured);
  void drop_what_has_no_gradient();
  void clip(double norm);
  void clip_values();
  std::vector<at::Tensor> gradients() const;

  OptimizerOptions options_;
  std::vector<ParameterGroup> groups_;
  std::vector<Kept> kept_;
  /// States by group, Kept and parameter.
  std::vector<std::vector<std::vector<at::Tensor>>> tensors_;
  std::set<std::string> frozen_;  // names that `state` would have if all parameters were trained
  std::vector<Work> work_;        // collected by measure() until it is applied
};

/// Creates the optimizer of `options.type`. Throws ConfigError for a rule that matches no
/// parameter.
std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options);

}  // namespace millrace
