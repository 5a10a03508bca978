// Ranks that train together hold the same tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Broadcasts the chief's values. `what` names them in messages: "the model". Throws Error naming
/// rank and tensor, and changes nothing, if names or shapes differ.
void take_chiefs_values(const Cluster& cluster, const NamedTensors& values,
                        const std::string& what);

/// Throws Error naming rank and tensor if a rank's values differ from the chief's in a single bit.
void check_same_values(const Cluster& cluster, const NamedTensors& values, const std::string& what);

/// The bytes of tensors, concatenated in the order of their elements, and back.
std::string bytes_of(at::TensorList tensors);
void set_bytes(at::TensorList tensors, std::string_view bytes);

}  // namespace millrace
