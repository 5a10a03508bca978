// 3x3 convolutions with 16 products in place of 36 (Lavin and Gray 2015, F(2x2, 3x3)): what
// detection spends most of its time in. Rounding errors are as small as those of the sum that it
// replaces, but other ones, so that training does without.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/models/layers/layers.h"

namespace millrace {

/// Whether `winograd` takes a convolution of stride 1 and padding 1. Does not depend on the number
/// of images, so that a batch gives what its images give alone.
bool winograd_fits(const at::Tensor& x, const at::Tensor& weight);

/// Convolves x (N, C, H, W) with `weight` (K, C, 3, 3), adds `bias` (K), if it is defined, and does
/// what comes after. For floats on the CPU. The same bytes for any number of threads.
at::Tensor winograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const After& after);

/// While it lives, this thread's convolutions are by `winograd` where that fits: for detection.
class Winograd {
 public:
  Winograd() : was_(active_) { active_ = true; }
  Winograd(const Winograd&) = delete;
  ~Winograd() { active_ = was_; }

  static bool is_active() { return active_; }

 private:
  static thread_local inline bool active_ = false;
  bool was_;
};

}  // namespace millrace
