// Copies a step's tensors to its device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace millrace {

/// Returns CPU tensors on `device`, sent as one asynchronous copy from page-locked memory. For the
/// CPU it returns the tensors themselves.
std::vector<at::Tensor> uploaded(std::vector<at::Tensor> values, at::Device device);

}  // namespace millrace
