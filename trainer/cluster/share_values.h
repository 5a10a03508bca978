// Makes and checks that ranks have the same tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Broadcasts the values of rank 0. `what` names them in messages, e.g. "the model". Throws Error
/// naming rank and tensor, and changes nothing, if names or shapes differ.
void broadcast_values(const Cluster& cluster, const NamedTensors& values, const std::string& what);

/// Throws Error naming rank and tensor if a rank's values differ from those of rank 0 in any bit.
void check_same_values(const Cluster& cluster, const NamedTensors& values, const std::string& what);

/// Converts tensors to bytes, concatenated in the order of their elements, and back.
std::string bytes_of(at::TensorList tensors);
void set_bytes(at::TensorList tensors, std::string_view bytes);

}  // namespace millrace
