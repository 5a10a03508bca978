// Runs something with several numbers of threads.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/support/tensors.h"

namespace millrace::testing {

/// Expects `work` to give the same bits on 1, 2, 3 and 8 threads.
inline void expect_same_on_any_threads(const std::function<std::vector<at::Tensor>()>& work) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto expected = work();
  for (const int threads : {2, 3, 8}) {
    at::set_num_threads(threads);
    const auto actual = work();
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(same(actual[i], expected[i]))
          << "tensor " << i << " with " << threads << " threads";
  }
  at::set_num_threads(before);
}

}  // namespace millrace::testing
