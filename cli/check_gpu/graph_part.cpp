// The part of a step whose shapes repeat, backbone and FPN forward and backward, queued as one
// recorded graph: what the launches cost that training pays for.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/cli/check_gpu/device_time.h"
#include "millrace/cli/check_gpu/part.h"
#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/detector/device_tools.h"
#include "millrace/models/detector/precision.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {
namespace {

/// Backbone and FPN over one image tensor, again and again.
class PyramidStep {
 public:
  PyramidStep(at::Device device, const PyramidOptions& options, at::IntArrayRef shape)
      : root_(parameters_, /*seed=*/1, device),
        body_(root_ / "body", options),
        fpn_(root_ / "fpn", body_.channels(), options.out_channels,
             {options.fpn_norm, options.norm_eps}),
        images_(at::randn(shape, at::detail::createCPUGenerator(1), at::kFloat)
                    .to(device)
                    .contiguous(at::MemoryFormat::ChannelsLast)) {}

  void operator()() {
    for (const auto& parameter : parameters_) {
      auto value = parameter.value;
      value.mutable_grad().reset();
    }
    const ComputeIn precision(at::kBFloat16, images_.device().type());
    at::Tensor sum;
    for (const auto& map : fpn_(body_(images_, NormPass{}), NormPass{})) {
      const auto part = map.to(at::kFloat).abs().mean();
      sum = sum.defined() ? sum + part : part;
    }
    sum.backward();
  }

  /// Of all parameters together.
  double gradient_norm() const {
    double sum = 0;
    for (const auto& parameter : parameters_)
      if (parameter.value.grad().defined())
        sum += parameter.value.grad().to(at::kDouble).square().sum().item<double>();
    return std::sqrt(sum);
  }

 private:
  Parameters parameters_;
  Scope root_;
  ResNet body_;
  Fpn fpn_;
  at::Tensor images_;
};

/// Seconds of one of several calls, until the device is done.
double wall_s(at::Device device, int times, const std::function<void()>& work) {
  work();
  wait_for(device);
  const auto began = Clock::now();
  for (int i = 0; i < times; ++i) work();
  wait_for(device);
  return seconds_since(began) / times;
}

}  // namespace

void check_graph(PartRun& run) {
  const Session session(run.recipe("", {}));
  const auto& tools = device_tools().entries();
  const auto found = tools.find(run.options.device);
  if (found == tools.end())
    return run.report.skip("the plug-in registers no device_tools, so that it can record no graph");
  const auto device = session.device();
  PyramidOptions options;
  if (run.options.small)
    options.backbone = BackboneType::resnet18, options.width = 16, options.out_channels = 16;
  const int times = run.options.small ? 1 : 10;
  for (const std::int64_t batch :
       run.options.small ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{1, 2, 8}) {
    const std::int64_t height = run.options.small ? 64 : 800, width = run.options.small ? 96 : 1344;
    PyramidStep step(device, options, {batch, 3, height, width});
    const auto queued_s = wall_s(device, times, std::ref(step));
    const auto expected = step.gradient_norm();
    const auto graph = found->second.create()->recorded(std::ref(step));
    const auto graph_s = wall_s(device, times, graph);
    const auto gradient = step.gradient_norm();
    run.report.row("Backbone and FPN, forward and backward, bf16",
                   {{"batch", batch},
                    {"queued one by one, ms", 1e3 * queued_s},
                    {"as one graph, ms", 1e3 * graph_s},
                    {"saved, ms", 1e3 * (queued_s - graph_s)}});
    run.report.check_error(fmt::format("the graph's gradients, batch {}", batch),
                           std::abs(gradient - expected) / expected, 1e-2);
  }
}

}  // namespace millrace::cli
