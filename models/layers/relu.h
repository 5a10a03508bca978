// ReLUs that take no memory, forwards or backwards.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// max(x, 0), in place.
at::Tensor relu_in_place(const at::Tensor& x);

/// The gradient before a ReLU that gave y: in place if no other tensor shares it.
at::Tensor before_relu(at::Tensor gradient, const at::Tensor& y);

}  // namespace millrace
