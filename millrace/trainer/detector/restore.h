// Saved tensors back into living ones, by name.
#pragma once

#include <string>

#include "millrace/trainer/detector/detector.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

/// Throws Error where a name is missing on either side or a shape differs; `what` says of what in
/// the message.
void check_fits(const NamedTensors& living, const NamedTensors& saved, const std::string& what);

/// Copies the values of `saved` into the tensors of `living`. Throws Error, before anything is
/// copied, where they do not fit.
void restore(const NamedTensors& living, const NamedTensors& saved, const std::string& what);

/// The same for a model's parameters; it is told that they have changed.
void restore(Detector& model, const NamedTensors& saved);

/// A model's parameters by name; they share its memory.
NamedTensors named_values(const Detector& model);

}  // namespace millrace
