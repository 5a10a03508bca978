// Copies saved tensors into existing ones, by name.
#pragma once

#include <string>

#include "millrace/models/detector/detector.h"
#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// Throws Error if a name is missing on either side or a shape differs. `what` is named in
/// messages.
void check_fits(const NamedTensors& target, const NamedTensors& saved, const std::string& what);

/// Copies `saved` into `target`. Throws Error, before anything is copied, if they do not fit.
void restore(const NamedTensors& target, const NamedTensors& saved, const std::string& what);

/// Restores a model's parameters and calls parameters_changed().
void restore(Detector& model, const NamedTensors& saved);

/// Returns a model's parameters by name; they share its memory.
NamedTensors named_values(const Detector& model);

}  // namespace millrace
