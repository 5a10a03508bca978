// Dynamic loss scaling (Micikevicius et al. 2018): fp16 has no room for small gradients, so the
// loss is multiplied by a factor before the backward pass and the gradients are divided by it
// after.
#pragma once

#include <cstdint>

namespace millrace {

/// The factor, and the search for it: halved where gradients overflow (that step is left out),
/// doubled after kPatience good steps in a row. Part of a checkpoint.
struct LossScale {
  static constexpr double kFirst = 65536, kLeast = 1, kMost = 16777216;
  static constexpr std::int64_t kPatience = 2000;

  double factor = kFirst;
  std::int64_t good_steps = 0;  // since it last changed

  /// After a step whose gradients were finite.
  void grow() {
    if (++good_steps < kPatience) return;
    good_steps = 0;
    if (factor < kMost) factor *= 2;
  }

  /// After one whose gradients were not. False: it cannot go lower, so that the scale is not to
  /// blame.
  bool shrink() {
    good_steps = 0;
    if (factor <= kLeast) return false;
    factor /= 2;
    return true;
  }
};

}  // namespace millrace
