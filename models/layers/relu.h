// ReLUs that need no memory, forward or backward.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Applies max(x, 0) in place.
at::Tensor relu_in_place(const at::Tensor& x);

/// Returns the gradient before a ReLU whose output is y: in place if no other tensor shares it.
at::Tensor before_relu(at::Tensor gradient, const at::Tensor& y);

}  // namespace millrace
