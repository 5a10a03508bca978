// Boxes for tests.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "millrace/base/random.h"

namespace millrace::testing {

/// Values in [low, high), the same for the same seed.
inline at::Tensor random_values(at::IntArrayRef shape, double low, double high,
                                std::uint64_t seed) {
  Rng rng{seed};
  auto values = at::empty(shape, at::kFloat);
  auto* out = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    out[i] = static_cast<float>(rng.uniform(low, high));
  return values;
}

/// (count, 4) boxes with corners in a square of `extent` pixels and sides of 1 .. `side` pixels.
inline at::Tensor random_boxes(std::int64_t count, double extent, double side, std::uint64_t seed) {
  const auto corner = random_values({count, 2}, 0, extent, seed);
  return at::cat({corner, corner + random_values({count, 2}, 1, side, seed + 1)}, 1);
}

}  // namespace millrace::testing
