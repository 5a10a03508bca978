// The length of a training.
#pragma once

#include <cmath>
#include <cstdint>

namespace millrace {

/// Steps of `images_per_step` that go `epochs` times through `samples`; the last may have fewer.
inline std::int64_t count_steps(double epochs, std::int64_t samples, std::int64_t images_per_step) {
  return static_cast<std::int64_t>(
      std::ceil(epochs * static_cast<double>(samples) / static_cast<double>(images_per_step)));
}

}  // namespace millrace
