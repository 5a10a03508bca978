// Which parameters an optimizer treats alike.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/trainer/optimizer/optimizer_options.h"

namespace millrace {

/// Where a group's weight decay comes from.
enum class Decay { of_weights, of_biases, of_norms, own };

/// Trained parameters under one rule.
struct ParameterGroup {
  Decay decay = Decay::of_weights;
  double own_decay = 0;  // with Decay::own
  double lr_factor = 1;
  bool trusted = false;  // LARS or LARC: weights, not biases and normalisations
  std::vector<std::string> names;
  std::vector<at::Tensor> values;

  double weight_decay(const OptimizerOptions& options) const;
};

/// Groups the trained parameters by `options` and its rules, freezes those that a rule says (no
/// requires_grad), and logs how many each rule took. Throws ConfigError for a rule that takes none.
std::vector<ParameterGroup> group_parameters(const Parameters& parameters,
                                             const OptimizerOptions& options);

/// The names of all parameters that are not trained: frozen already, or by a rule of `options`.
/// Without buffers, which never are.
std::vector<std::string> frozen_parameters(const Parameters& parameters,
                                           const OptimizerOptions& options);

}  // namespace millrace
