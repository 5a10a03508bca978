// The floating point type of convolutions and matrix products. Weights, losses, boxes and the
// optimizer stay fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace millrace {

/// Floating point types as an option names them. tf32 is fp32 that GPUs multiply with fewer bits,
/// see choose_products.
enum class FloatType { fp32, tf32, bf16, fp16 };
inline std::vector<std::string> value_names(FloatType) { return {"fp32", "tf32", "bf16", "fp16"}; }

at::ScalarType precision_type(FloatType type);

/// Sets whether the GPUs of this process multiply fp32 numbers in TF32 (8 bits of exponent, 10 of
/// mantissa) or in fp32, in cuDNN's convolutions and in cuBLAS's matrix products alike. By default,
/// libtorch uses TF32 for the former and fp32 for the latter.
void choose_products(bool tf32);

/// While it exists, this thread computes in `type`: through libtorch's autocast on `device`, and
/// through compute_type() in layers that cast themselves. Casts of weights are cached meanwhile
/// unless `keeps_casts` is false: concurrent threads would share them and their gradients.
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

/// Returns the type that this thread computes in on the device of `x`: that of an active ComputeIn,
/// else that of `x`.
at::ScalarType compute_type(const at::Tensor& x);

/// Returns true if the processor has instructions for products of that type; libtorch emulates
/// others.
bool cpu_multiplies(at::ScalarType type);

}  // namespace millrace
