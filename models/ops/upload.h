// What a step sends to its device.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace millrace {

/// Tensors of the CPU on `device`: together one copy, from page-locked memory, which the host does
/// not wait for. On the CPU the tensors themselves.
std::vector<at::Tensor> uploaded(std::vector<at::Tensor> values, at::Device device);

}  // namespace millrace
