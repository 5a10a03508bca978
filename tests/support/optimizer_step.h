// A whole step of an optimizer.
#pragma once

#include <cstddef>

#include "millrace/trainer/optimizer/optimizer.h"

namespace millrace::testing {

/// Divides the gradients by `scale`, applies them at learning rate `lr`, and clears them. Waits for
/// the device in between.
inline OptimizerStep take_step(Optimizer& optimizer, double lr, double scale = 1) {
  const auto measured = optimizer.measure(scale).to(at::kCPU, at::kDouble);
  return optimizer.apply(
      lr, {measured.const_data_ptr<double>(), static_cast<std::size_t>(measured.numel())});
}

}  // namespace millrace::testing
