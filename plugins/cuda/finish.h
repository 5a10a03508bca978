// What follows a convolution, in one pass over its output: bias, sum and ReLU.
#pragma once

#include <cstdint>

#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

/// nullptr = not added.
template <typename T>
struct Epilogue {
  const float* bias;  // (channels)
  const T* add;       // as the output
  bool relu;

  /// Of the output's value `value` at place `i`, of channel `channel`. What is no number stays so.
  MILLRACE_HOST_DEVICE float operator()(float value, float added, std::int64_t channel) const {
    if (bias) value += bias[channel];
    if (add) value += added;
    return relu && value < 0 ? 0.0F : value;
  }
};

/// y (count), channels last. T: float, __half or __nv_bfloat16; sums are in float.
template <typename T>
void finish(T* y, std::int64_t count, std::int64_t channels, const Epilogue<T>& epilogue,
            Stream stream);

}  // namespace millrace::cuda
