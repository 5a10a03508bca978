// Saved tensors back into living ones, by name.
#pragma once

#include <string>

#include "trainer/safetensors.h"

namespace millrace {

/// Copies the values of `saved` into the tensors of `living`. Throws Error, before anything is
/// copied, where a name is missing on either side or a shape differs; `what` says of what in the
/// message.
void restore(const NamedTensors& living, const NamedTensors& saved, const std::string& what);

}  // namespace millrace
