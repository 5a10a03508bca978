// What turns gradients into new values: SGD or AdamW.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/optimizer/optimizer_options.h"
#include "millrace/trainer/optimizer/parameter_groups.h"

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
  /// gradient are left alone. Waits for the device: `measure`, its numbers read, `apply`.
  OptimizerStep step(double lr, double scale = 1);

  /// The first half of a step: divides the gradients by `scale` and queues what the second half
  /// decides by, in one dimension on their device: the norm of each gradient, then, with `trust`,
  /// that of each value under it. Empty if no parameter has a gradient.
  at::Tensor measure(double scale = 1);

  /// The second half, with the numbers of `measure`: clips, applies and clears the gradients, or
  /// changes nothing if one is not finite. Parameters that have lost their gradient since are left
  /// alone. Throws std::invalid_argument for too few numbers.
  OptimizerStep apply(double lr, std::span<const double> measured);

  /// The second half for a device that is not waited for: the device decides by `measured` and
  /// changes nothing where `bad`, one fp32 number there, is 1 and not 0. Not if `needs_host`.
  void apply_unless(const at::Tensor& bad, double lr, const at::Tensor& measured);

  /// What became of that, by the numbers of `measure`, for the parameters they were taken of.
  OptimizerStep outcome(std::span<const double> measured) const;

  /// Whether the second half computes with the numbers on the host: LARS and LARC.
  bool needs_host() const { return options_.trust != Trust::none; }

  void clear_gradients();

  /// What it keeps of every trained parameter, under names that begin with the parameter's; shared,
  /// not copied.
  NamedTensors state() const;

  /// Copies a state back. State of parameters that are frozen now is dropped, that of parameters
  /// that were frozen starts at 0; both are logged. Throws Error naming a tensor that is unknown or
  /// has another shape.
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
    std::vector<double> gradient_norms;         // after clipping by norm; known to `apply` alone
    std::vector<double> value_norms;            // of a trusted group, likewise
    std::vector<std::vector<at::Tensor>> kept;  // by Kept, then as `names`
  };

  /// What the device decides itself, as fp32 numbers on it; empty where the host has decided.
  struct OnDevice {
    std::optional<at::Tensor> divisor;  // of the gradients, at least 1: clips their norm
    std::optional<at::Tensor> bad;      // 1: change nothing, else 0
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
  std::vector<std::vector<std::vector<at::Tensor>>> tensors_;  // by group, Kept, parameter
  std::set<std::string> frozen_;  // names that `state` would have if all parameters were trained
  std::vector<Work> work_;        // from `measure` until applied
};

/// The optimizer that `options.type` names. Throws ConfigError for a rule that fits no parameter.
std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options);

}  // namespace millrace
