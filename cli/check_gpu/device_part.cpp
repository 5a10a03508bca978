// What there is: the device and its libraries, and what they reach, to judge all else by.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <thread>

#include "millrace/base/clock.h"
#include "millrace/cli/check_gpu/device_time.h"
#include "millrace/cli/check_gpu/part.h"
#include "millrace/models/detector/device_tools.h"

namespace millrace::cli {
namespace {

/// Products of two square matrices per second, in units of 10^12 operations.
double matmul_tflops(at::Device device, at::ScalarType type, std::int64_t side) {
  const auto a = at::zeros({side, side}, at::TensorOptions(device).dtype(type));
  constexpr int kTimes = 10;
  const auto seconds = device_seconds(device, [&] {
    for (int i = 0; i < kTimes; ++i) at::matmul(a, a);
  });
  return 2e-12 * kTimes * static_cast<double>(side) * static_cast<double>(side) *
         static_cast<double>(side) / seconds;
}

double copy_gb_per_s(const at::Tensor& from, const at::Tensor& to, at::Device device) {
  const auto seconds = device_seconds(device, [&] { to.copy_(from, /*non_blocking=*/true); });
  return static_cast<double>(from.nbytes()) / seconds / 1e9;
}

void measure_products(PartRun& run, at::Device device) {
  const std::int64_t side = run.options.small ? 64 : 8192;
  auto& libtorch = at::globalContext();
  const auto say = [&](const char* precision, at::ScalarType type) {
    run.report.row(
        "Matrix products",
        {{"precision", precision}, {"side", side}, {"TFLOP/s", matmul_tflops(device, type, side)}});
  };
  say("bf16", at::kBFloat16);
  say("fp16", at::kHalf);
  libtorch.setFloat32MatmulPrecision("high");
  say("tf32", at::kFloat);
  libtorch.setFloat32MatmulPrecision("highest");
  say("fp32", at::kFloat);
}

void measure_copies(PartRun& run, at::Device device) {
  const std::int64_t bytes = run.options.small ? 1 << 16 : 1 << 28;
  const auto host = at::TensorOptions(at::kByte).pinned_memory(run.on_cuda());
  const auto here = at::zeros({bytes}, host), pageable = at::zeros({bytes}, at::kByte);
  const auto there = at::zeros({bytes}, at::TensorOptions(device).dtype(at::kByte));
  const auto again = at::zeros({bytes}, at::TensorOptions(device).dtype(at::kByte));
  const auto say = [&](const char* what, double rate) {
    run.report.row("Copies", {{"from, to", what}, {"GB/s", rate}});
  };
  say("host, page-locked, to the device", copy_gb_per_s(here, there, device));
  say("host, pageable, to the device", copy_gb_per_s(pageable, there, device));
  say("device to the host, page-locked", copy_gb_per_s(there, here, device));
  say("device to the device", copy_gb_per_s(there, again, device));
}

/// Seconds of the host to queue a kernel that has almost nothing to do.
void measure_launch(PartRun& run, at::Device device) {
  const int times = run.options.small ? 10 : 5000;
  const auto one = at::zeros({1}, at::TensorOptions(device).dtype(at::kFloat));
  one.add_(1);
  wait_for(device);
  const auto began = Clock::now();
  for (int i = 0; i < times; ++i) one.add_(1);
  const auto queued = seconds_since(began);
  wait_for(device);
  run.report.row("Small kernels", {{"queued, us each", 1e6 * queued / times},
                                   {"done, us each", 1e6 * seconds_since(began) / times}});
}

}  // namespace

void check_device(PartRun& run) {
  const auto device = run.device();
  run.report.fact("libtorch", TORCH_VERSION);
  run.report.fact("processors of the host", fmt::format("{}", std::thread::hardware_concurrency()));
  const auto& tools = device_tools().entries();
  if (const auto found = tools.find(run.options.device); found != tools.end())
    for (const auto& [name, text] : found->second.create()->facts()) run.report.fact(name, text);
  else
    run.report.note("The plug-in says nothing of the device: it registers no device_tools.");
  measure_launch(run, device);
  measure_products(run, device);
  measure_copies(run, device);
}

}  // namespace millrace::cli
