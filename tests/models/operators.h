// Inputs for operator tests, and checks that apply to all operators.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <limits>
#include <vector>

#include "millrace/base/random.h"
#include "tests/support/tensors.h"

namespace millrace::testing {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// Returns random values in [low, high), drawn with `seed`.
inline at::Tensor random_values(at::IntArrayRef shape, double low, double high,
                                std::uint64_t seed) {
  Rng rng{seed};
  auto values = at::empty(shape, at::kFloat);
  auto* out = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    out[i] = static_cast<float>(rng.uniform(low, high));
  return values;
}

/// Returns boxes [count, 4] with x1 and y1 below `extent` pixels, and a width and height of 1 to
/// `side` pixels.
inline at::Tensor random_boxes(std::int64_t count, double extent, double side, std::uint64_t seed) {
  const auto corner = random_values({count, 2}, 0, extent, seed);
  return at::cat({corner, corner + random_values({count, 2}, 1, side, seed + 1)}, 1);
}

/// Returns boxes [N, 4] from consecutive x1, y1, x2, y2.
inline at::Tensor boxes_of(const std::vector<float>& corners) {
  return at::tensor(corners).view({-1, 4});
}

inline at::Tensor longs(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong);
}

/// Expects `work` to return the same bits with 1, 2, 3 and 8 threads.
inline void expect_same_on_any_threads(const std::function<std::vector<at::Tensor>()>& work) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto expected = work();
  for (const int threads : {2, 3, 8}) {
    at::set_num_threads(threads);
    const auto actual = work();
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(tensors_equal(actual[i], expected[i]))
          << "tensor " << i << " with " << threads << " threads";
  }
  at::set_num_threads(before);
}

/// Compares the gradient of the scalar `function` at `point` (double) with central differences.
inline void expect_gradient(const std::function<at::Tensor(const at::Tensor&)>& function,
                            const at::Tensor& point) {
  constexpr double kStep = 1e-5;
  const auto input = point.clone().requires_grad_();
  function(input).backward();
  const at::NoGradGuard no_grad;
  auto numeric = at::empty_like(point), moved = point.clone();
  for (std::int64_t i = 0; i < moved.numel(); ++i) {
    auto& value = moved.mutable_data_ptr<double>()[i];
    const auto shifted = [&, middle = value](double offset) {
      value = middle + offset;
      const auto result = function(moved).item<double>();
      value = middle;
      return result;
    };
    numeric.mutable_data_ptr<double>()[i] = (shifted(kStep) - shifted(-kStep)) / (2 * kStep);
  }
  EXPECT_TRUE(tensors_close(input.grad(), numeric, 1e-7));
}

}  // namespace millrace::testing
