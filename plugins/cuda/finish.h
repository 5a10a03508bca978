// The epilogue of a convolution (bias, residual sum and ReLU) in one pass over its output.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

/// Operations applied to each output value; nullptr = not added.
template <typename T>
struct Epilogue {
  const float* bias;  // (channels)
  const T* add;       // same shape as the output
  bool relu;

  /// Returns the final value for output `value`. NaN stays NaN.
  MILLRACE_HOST_DEVICE float operator()(float value, float added, std::int64_t channel) const {
    if (bias) value += bias[channel];
    if (add) value += added;
    return relu && value < 0 ? 0.0F : value;
  }
};

/// Applies the epilogue to y (count), channels last, in place. T is float, __half or __nv_bfloat16;
/// sums are computed in float.
template <typename T>
void finish(T* y, std::int64_t count, std::int64_t channels, const Epilogue<T>& epilogue,
            Stream stream);

}  // namespace millrace::cuda
