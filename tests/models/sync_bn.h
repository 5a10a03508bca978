// Synchronised batch norm over ranks, used by the rank tests of each device.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>

#include <cstdint>

#include "millrace/models/layers/layers.h"

namespace millrace::testing {

/// The output, gradients and running statistics of a batch norm.
struct Normed {
  at::Tensor y, dx, dweight, dbias, mean, var;
};

/// Returns distinct values, [images, 3, 5, 7].
inline at::Tensor values_to_norm(std::int64_t images) {
  return at::cos(at::arange(images * 3 * 5 * 7, at::kFloat)).view({images, 3, 5, 7}) + 3;
}

/// Applies a convolution and a batch norm over all ranks to this rank's part: `count` images of
/// `whole`, beginning with image `first`.
inline Normed normed(const Cluster& all, at::Device device, const at::Tensor& whole,
                     std::int64_t first, std::int64_t count) {
  Parameters parameters;
  const Scope root(parameters, 1, device);
  const ConvNorm layer(root / "conv", root / "bn", {3, 8, 1}, {Norm::sync_bn});
  ClusterSum ranks(all, device.type());
  const auto x = whole.narrow(0, first, count).clone().to(device).requires_grad_();
  const auto y = layer(x, {.training = true, .ranks = all.size() > 1 ? &ranks : nullptr});
  const auto wanted =
      at::sin(at::arange(whole.size(0) * 8 * 35, at::kFloat)).view({whole.size(0), 8, 5, 7});
  (y * wanted.narrow(0, first, count).to(device)).sum().backward();
  const auto of = [&](const char* name) { return parameters.find(name)->value; };
  return {y.detach(),
          x.grad(),
          of("bn.weight").grad(),
          of("bn.bias").grad(),
          of("bn.running_mean"),
          of("bn.running_var")};
}

}  // namespace millrace::testing
