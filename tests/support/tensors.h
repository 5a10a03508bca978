// Compares tensors in tests.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

namespace millrace::testing {

/// Passes if the shapes are equal and no value differs by more than `relative` times the largest
/// absolute expected value.
inline ::testing::AssertionResult tensors_close(const at::Tensor& actual,
                                                const at::Tensor& expected, double relative) {
  if (actual.sizes() != expected.sizes())
    return ::testing::AssertionFailure()
           << "shape " << actual.sizes() << ", expected " << expected.sizes();
  if (expected.numel() == 0) return ::testing::AssertionSuccess();
  const auto wanted = expected.to(at::kDouble);
  const auto error = (actual.to(at::kDouble) - wanted).abs().max().item<double>();
  const auto largest = wanted.abs().max().item<double>();
  if (error <= relative * largest) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "differs by up to " << error << ", largest value " << largest;
}

/// Passes if type, shape and values are equal.
inline ::testing::AssertionResult tensors_equal(const at::Tensor& actual,
                                                const at::Tensor& expected) {
  if (actual.sizes() != expected.sizes() || actual.scalar_type() != expected.scalar_type())
    return ::testing::AssertionFailure() << actual.scalar_type() << actual.sizes() << ", expected "
                                         << expected.scalar_type() << expected.sizes();
  if (actual.equal(expected)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << actual.ne(expected).sum().item<std::int64_t>() << " of "
                                       << expected.numel() << " values differ";
}

}  // namespace millrace::testing
