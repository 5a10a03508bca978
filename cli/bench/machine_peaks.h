// What a machine can do at best, measured: the roofline that operators stand under.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace::cli {

struct MachinePeaks {
  double flops_per_s = 0;  // of a large matrix product, a multiplication and an addition being two
  double bytes_per_s = 0;  // of z = x + 2 y over vectors of 64 MiB that no cache holds
};

/// With this process's threads of libtorch, in a second: products of `type` on `device`, the best
/// of some.
MachinePeaks measure_peaks(c10::Device device, at::ScalarType type);

}  // namespace millrace::cli
