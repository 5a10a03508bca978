// The seal of a weight file: a digest of all that it holds, kept among its metadata, so that the
// file alone shows whether a byte of it has changed.
#pragma once

#include "millrace/weights/safetensors.h"

namespace millrace {

/// `metadata` with the seal of it and of the tensors: of their names, types, shapes and bytes,
/// whatever their order.
Metadata sealed(Metadata metadata, const NamedTensors& tensors);

/// Whether there is a seal. Throws Error where it is of other tensors or other metadata, or missing
/// although the metadata are ours.
bool check_seal(const Metadata& metadata, const NamedTensors& tensors);

}  // namespace millrace
