// The seal of a weight file: a digest of its content among its metadata, so that the file alone
// shows whether a byte of it has changed.
#pragma once

#include "millrace/weights/safetensors.h"

namespace millrace {

/// `metadata` with the seal of it and the tensors: their names, types, shapes and bytes in any
/// order.
Metadata sealed(Metadata metadata, const NamedTensors& tensors);

/// Whether there is a seal. Throws Error if it is of other tensors or metadata, or is missing
/// although the metadata are ours.
bool check_seal(const Metadata& metadata, const NamedTensors& tensors);

}  // namespace millrace
