#include "millrace/cli/bench/machine_peaks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>
#include <limits>

#include "millrace/base/clock.h"
#include "millrace/models/layers/matrix_product.h"
#include "millrace/trainer/device_numbers.h"

namespace millrace::cli {
namespace {

constexpr int kTries = 6;  // the first warms up

/// Seconds of the fastest.
template <typename Work>
double fastest(c10::Device device, const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    wait_for(device);
    const auto start = Clock::now();
    work();
    wait_for(device);
    best = std::min(best, seconds_since(start));
  }
  return best;
}

}  // namespace

MachinePeaks measure_peaks(c10::Device device, at::ScalarType type) {
  const at::NoGradGuard no_graph;
  const std::int64_t side = device.is_cpu() ? 2048 : 8192, length = std::int64_t{1} << 24;
  const auto a = at::ones({side, side}, at::TensorOptions(device).dtype(type));
  const auto x = at::ones({length}, at::TensorOptions(device).dtype(at::kFloat));
  const auto y = at::ones_like(x);
  auto z = at::ones_like(x);
  const auto cube = static_cast<double>(side) * static_cast<double>(side * side);
  return {.flops_per_s = 2 * cube / fastest(device, [&] { times_transposed(a, a); }),
          .bytes_per_s = 3 * static_cast<double>(x.nbytes()) /
                         fastest(device, [&] { at::add_out(z, x, y, 2); })};
}

}  // namespace millrace::cli
