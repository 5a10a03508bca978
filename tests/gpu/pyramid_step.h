// The part of a training step with the same shapes in every step: backbone and FPN, forward and
// backward.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>

#include <cmath>

#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/detector/precision.h"

namespace millrace::testing {

/// Runs the step any number of times on one image tensor, in bf16.
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
    for (const auto& map : fpn_(body_(images_, NormMode{}), NormMode{})) {
      const auto part = map.to(at::kFloat).abs().mean();
      sum = sum.defined() ? sum + part : part;
    }
    sum.backward();
  }

  /// Returns the gradient norm over all parameters.
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

}  // namespace millrace::testing
