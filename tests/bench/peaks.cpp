// Prints the peak speed of this machine as JSON, from a large matrix product and from z = x + 2 y
// over vectors of 64 MiB, which exceed every cache. `trainer bench model --work` reports the
// fraction of this speed that operators reach.
//
//   bench_peaks [cpu|cuda] [THREADS]
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>

#include "millrace/base/clock.h"
#include "millrace/models/ops/cpu/product.h"
#include "millrace/trainer/device_numbers.h"

namespace millrace {
namespace {

constexpr int kTries = 6;  // the first is a warm-up

/// Returns the seconds of the fastest run.
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

void run(c10::Device device) {
  const at::NoGradGuard no_graph;
  const std::int64_t side = device.is_cpu() ? 2048 : 8192, length = std::int64_t{1} << 24;
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const auto a = at::ones({side, side}, options), x = at::ones({length}, options),
             y = at::ones_like(x);
  auto z = at::ones_like(x);
  const auto cube = static_cast<double>(side) * static_cast<double>(side * side);
  fmt::print(
      "{{\"flops_per_s\": {:.4g}, \"bytes_per_s\": {:.4g}}}\n",
      2 * cube / fastest(device, [&] { times_transposed(a, a); }),
      3 * static_cast<double>(x.nbytes()) / fastest(device, [&] { at::add_out(z, x, y, 2); }));
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) try {
  if (argc > 2) at::set_num_threads(std::atoi(argv[2]));
  millrace::run(c10::Device(argc > 1 ? argv[1] : "cpu"));
  return 0;
} catch (const std::exception& problem) {
  fmt::print(stderr, "bench_peaks: {}\n", problem.what());
  return 1;
}
