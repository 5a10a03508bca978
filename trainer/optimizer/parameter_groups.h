// Groups of parameters that an optimizer treats alike.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/trainer/optimizer/optimizer_options.h"

namespace millrace {

/// Origin of a group's weight decay.
enum class Decay { of_weights, of_biases, of_norms, own };

/// Trained parameters with the same settings.
struct ParameterGroup {
  Decay decay = Decay::of_weights;
  double own_decay = 0;  // weight decay for Decay::own
  double lr_factor = 1;
  // True = LARS or LARC applies: to weights, not to biases and normalizations.
  bool trusted = false;
  std::vector<std::string> names;
  std::vector<at::Tensor> values;

  double weight_decay(const OptimizerOptions& options) const;
};

/// Groups the trained parameters by `options` and its rules, freezes the parameters of frozen rules
/// (clears requires_grad), and logs how many parameters each rule matched. Throws ConfigError for a
/// rule that matches none.
std::vector<ParameterGroup> group_parameters(const Parameters& parameters,
                                             const OptimizerOptions& options);

/// Returns the names of all parameters that are not trained: already frozen, or frozen by a rule of
/// `options`. Buffers are not included.
std::vector<std::string> frozen_parameters(const Parameters& parameters,
                                           const OptimizerOptions& options);

}  // namespace millrace
