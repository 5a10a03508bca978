// Ranks that train together hold the same tensors.
#pragma once

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

/// Copies the chief's values into those of every other rank. `what` names them in messages: "the
/// model". Throws Error naming rank and tensor where names or shapes differ; then nothing was
/// changed.
void take_chiefs_values(const Cluster& cluster, const NamedTensors& values,
                        const std::string& what);

/// Throws Error naming rank and tensor where a rank's values are others than the chief's, in a
/// single bit.
void check_same_values(const Cluster& cluster, const NamedTensors& values, const std::string& what);

/// The bytes of tensors, one behind the other in the order of their elements, and back.
std::string bytes_of(at::TensorList tensors);
void set_bytes(at::TensorList tensors, std::string_view bytes);

}  // namespace millrace
