// The type of convolutions and matrix products. Weights, losses, boxes and the optimizer stay fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace millrace {

/// Floating point numbers as an option names them. tf32 is fp32 that GPUs multiply in another way,
/// see choose_products.
enum class FloatType { fp32, tf32, bf16, fp16 };
inline std::vector<std::string> value_names(FloatType) { return {"fp32", "tf32", "bf16", "fp16"}; }

at::ScalarType precision_type(FloatType type);

/// Sets how the GPUs of this process multiply fp32 numbers, in cuDNN's convolutions and in cuBLAS's
/// matrix products alike: in TF32 (8 bits of exponent, 10 of mantissa), or in fp32. Left alone,
/// libtorch takes TF32 for the former and fp32 for the latter.
void choose_products(bool tf32);

/// While it lives, this thread computes in `type`: libtorch's autocast on `device`, and
/// compute_type() for layers that cast themselves. Casts of weights are kept meanwhile unless
/// `keeps_casts` is false: threads that compute side by side would share them and their gradients.
class ComputeIn {
 public:
  ComputeIn(at::ScalarType type, at::DeviceType device, bool keeps_casts = true);
  ComputeIn(const ComputeIn&) = delete;
  ~ComputeIn();

 private:
  at::DeviceType device_;
  bool was_enabled_, kept_casts_;
  at::ScalarType was_;
};

/// The type that this thread computes in on the device of `x`: of a ComputeIn, else that of `x`.
at::ScalarType compute_type(const at::Tensor& x);

/// Whether the processor has instructions for products of that type, which libtorch else emulates.
bool cpu_multiplies(at::ScalarType type);

}  // namespace millrace
