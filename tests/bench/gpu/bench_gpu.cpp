// bench_gpu: speed of the device (matrix products, copies, small kernels), backbone and FPN
// launched op by op and as one graph, and the time of a training step by part. Prints one JSON
// object of tables; tests/bench/gpu/gpu.py shows them together with training speeds.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <iostream>

#include "millrace/base/clock.h"
#include "millrace/base/log.h"
#include "millrace/models/detector/device_tools.h"
#include "tests/bench/gpu/tables.h"
#include "tests/gpu/device_time.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/pyramid_step.h"

namespace millrace::testing {
namespace {

/// Returns the speed of products of two square matrices, in 10^12 operations per second. The values
/// are random, since products of zeros are faster.
double matmul_tflops(at::Device device, at::ScalarType type, std::int64_t side) {
  const auto a = at::randn({side, side}).to(device, type);
  constexpr int kTimes = 10;
  const auto seconds = device_seconds(device, [&] {
    for (int i = 0; i < kTimes; ++i) at::matmul(a, a);
  });
  return 2e-12 * kTimes * static_cast<double>(side) * static_cast<double>(side) *
         static_cast<double>(side) / seconds;
}

void measure_products(Tables& tables) {
  const std::int64_t side = tested().small ? 64 : 8192;
  auto& libtorch = at::globalContext();
  const auto add = [&](const char* precision, at::ScalarType type) {
    tables["Matrix products"].push_back({{"precision", precision},
                                         {"side", side},
                                         {"TFLOP/s", matmul_tflops(tested().device, type, side)}});
  };
  add("bf16", at::kBFloat16);
  add("fp16", at::kHalf);
  libtorch.setFloat32MatmulPrecision("high");
  add("tf32", at::kFloat);
  libtorch.setFloat32MatmulPrecision("highest");
  add("fp32", at::kFloat);
}

void measure_copies(Tables& tables) {
  const auto device = tested().device;
  const std::int64_t bytes = tested().small ? 1 << 16 : 1 << 28;
  const auto host = at::TensorOptions(at::kByte).pinned_memory(tested().on_cuda());
  const auto locked = at::zeros({bytes}, host), pageable = at::zeros({bytes}, at::kByte);
  const auto there = at::zeros({bytes}, at::TensorOptions(device).dtype(at::kByte));
  const auto again = at::zeros({bytes}, at::TensorOptions(device).dtype(at::kByte));
  const auto add = [&](const char* what, const at::Tensor& from, const at::Tensor& to) {
    const auto seconds = device_seconds(device, [&] { to.copy_(from, /*non_blocking=*/true); });
    tables["Copies"].push_back(
        {{"from, to", what}, {"GB/s", static_cast<double>(bytes) / seconds / 1e9}});
  };
  add("host, page-locked, to the device", locked, there);
  add("host, pageable, to the device", pageable, there);
  add("device to the host, page-locked", there, locked);
  add("device to the device", there, again);
}

/// Measures the time that the host needs to launch a nearly empty kernel.
void measure_launch(Tables& tables) {
  const auto device = tested().device;
  const int times = tested().small ? 10 : 5000;
  const auto one = at::zeros({1}, at::TensorOptions(device).dtype(at::kFloat));
  one.add_(1);
  wait_for(device);
  const auto began = Clock::now();
  for (int i = 0; i < times; ++i) one.add_(1);
  const auto queued = seconds_since(began);
  wait_for(device);
  tables["Small kernels"].push_back({{"queued, us each", 1e6 * queued / times},
                                     {"done, us each", 1e6 * seconds_since(began) / times}});
}

/// Returns the mean seconds per call of `work`, including the time until the device has finished.
double wall_s(at::Device device, int times, const std::function<void()>& work) {
  work();
  wait_for(device);
  const auto began = Clock::now();
  for (int i = 0; i < times; ++i) work();
  wait_for(device);
  return seconds_since(began) / times;
}

/// Measures the cost of kernel launches in training.
void measure_graph(Tables& tables) {
  const auto device = tested().device;
  const bool small = tested().small;
  PyramidOptions options;
  if (small)
    options.backbone = BackboneType::resnet18, options.width = 16, options.out_channels = 16;
  const int times = small ? 1 : 10;
  const std::int64_t height = small ? 64 : 800, width = small ? 96 : 1344;
  for (const std::int64_t batch : {1, 2, 8}) {
    PyramidStep step(device, options, {batch, 3, height, width});
    const auto queued_s = wall_s(device, times, std::ref(step));
    const auto graph = device_tools().at(tested().kind).create()->recorded(std::ref(step));
    const auto graph_s = wall_s(device, times, graph);
    tables["Backbone and FPN, forward and backward, bf16"].push_back(
        {{"batch", batch},
         {"queued one by one, ms", 1e3 * queued_s},
         {"as one graph, ms", 1e3 * graph_s},
         {"saved, ms", 1e3 * (queued_s - graph_s)}});
  }
}

int measure(const std::string& recipe, const std::string& trace) {
  tested().open(/*local_rank=*/0);
  Tables tables;
  for (const auto& [name, value] : device_tools().at(tested().kind).create()->facts())
    tables["Device"].push_back({{"fact", name}, {"value", value}});
  measure_launch(tables);
  measure_products(tables);
  measure_copies(tables);
  measure_graph(tables);
  if (!recipe.empty()) profile_step(tables, recipe, trace);
  std::cout << tables.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace millrace::testing

int main(int argc, char** argv) {
  using namespace millrace;
  CLI::App app{"Measures the speed of a GPU", "bench_gpu"};
  std::string recipe, trace;
  millrace::testing::tested().add_options(app);
  app.add_option("--recipe", recipe, "configuration whose training step is profiled");
  app.add_option("--trace", trace, "output file for the timeline of these steps (Perfetto)");
  CLI11_PARSE(app, argc, argv);
  start_logging();
  try {
    return millrace::testing::measure(recipe, trace);
  } catch (const std::exception& problem) {
    std::cerr << "bench_gpu: " << problem.what() << "\n";
    return 1;
  }
}
