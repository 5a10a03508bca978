// In which type convolutions and matrix products are worked out. Weights, losses, boxes and the
// optimiser stay fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace millrace {

/// "fp32", "bf16" or "fp16". Throws std::invalid_argument otherwise.
at::ScalarType precision_type(const std::string& precision);

/// While it lives, the thread that made it works in `type`: libtorch's autocast on `device`, and
/// compute_type() for layers that do their own casting. With fp32 nothing changes. Casts of weights
/// are kept until it dies.
class ComputeIn {
 public:
  ComputeIn(at::ScalarType type, at::DeviceType device);
  ComputeIn(const ComputeIn&) = delete;
  ~ComputeIn();

 private:
  at::DeviceType device_;
  bool was_enabled_;
  at::ScalarType was_;
};

/// What this thread works in on the device of `x`: the type of a ComputeIn, the tensor's own where
/// there is none.
at::ScalarType compute_type(const at::Tensor& x);

/// Whether the processor has instructions for products of that type; without, libtorch emulates
/// them.
bool cpu_multiplies(at::ScalarType type);

}  // namespace millrace
