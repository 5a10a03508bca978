// FLOPs and bytes of operators, compared with hand-computed counts.

#include <ATen/ops/add.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "millrace/trainer/trace/op_trace.h"

namespace millrace::testing {
namespace {

/// Returns the work of the single call of operator `name` in `compute`.
OpWork work_of(const std::string& name, bool counts, const std::function<void()>& compute) {
  OpTrace trace(at::kCPU, counts);
  compute();
  for (const auto& span : trace.take())
    if (span.name == name) return span.work;
  ADD_FAILURE() << name << " was not called";
  return {};
}

TEST(OpWork, CountsMatrixProduct) {
  const auto a = at::ones({3, 5}), b = at::ones({5, 7});
  const auto work = work_of("aten::mm", true, [&] { at::mm(a, b); });
  EXPECT_EQ(work.flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(work.bytes, 4 * (3 * 5 + 5 * 7 + 3 * 7));
}

TEST(OpWork, CountsOnlyBytesOfAddition) {
  const auto a = at::ones({10}), b = at::ones({10});
  const auto work = work_of("aten::add", true, [&] { at::add(a, b); });
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.bytes, 3 * 10 * 4);
}

TEST(OpWork, CountsRequestedConvolutionGradients) {
  // 2 images, 3 input and 8 output channels, 3x3 kernel with stride 2: 9x9 to 4x4.
  const auto x = at::ones({2, 3, 9, 9}), weight = at::ones({8, 3, 3, 3}),
             dy = at::ones({2, 8, 4, 4});
  const double product = 2.0 * (2 * 8 * 4 * 4) * (3 * 3 * 3);
  for (const bool of_x : {false, true})
    for (const bool of_weight : {false, true}) {
      const auto work = work_of("aten::convolution_backward", true, [&] {
        at::convolution_backward(dy, x, weight, at::OptionalIntArrayRef(), {2, 2}, {0, 0}, {1, 1},
                                 /*transposed=*/false, {0, 0}, 1, {of_x, of_weight, false});
      });
      EXPECT_EQ(work.flops, product * (int{of_x} + int{of_weight}));
    }
}

TEST(OpWork, IsCountedOnlyOnRequest) {
  const auto a = at::ones({3, 3});
  const auto work = work_of("aten::mm", false, [&] { at::mm(a, a); });
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.bytes, 0);
}

}  // namespace
}  // namespace millrace::testing
