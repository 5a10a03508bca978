#include "millrace/models/layers/batch_norms.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <tuple>

#include "millrace/models/detector/rank_sum.h"

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Statistics over the batches of all ranks, (C) each in fp32.
struct Statistics {
  at::Tensor mean, var;  // var is divided by the count
  double count = 0;      // values per channel
};

Statistics over_all_ranks(const at::Tensor& y, RankSum& ranks) {
  const auto channels = y.size(1), count = y.numel() / channels;
  // Sums of values and of squares are in double, so that their difference is exact enough.
  auto sums = at::zeros({2 * channels + 1}, y.options().dtype(at::kDouble));
  if (count > 0) {
    const std::array<std::int64_t, 3> dims{0, 2, 3};
    const auto [var, mean] =
        at::var_mean(y.to(at::kFloat), at::OptionalIntArrayRef(dims), /*correction=*/at::Scalar(0));
    const auto exact = mean.to(at::kDouble);
    sums.narrow(0, 0, channels).copy_(exact * count);
    sums.narrow(0, channels, channels).copy_((var.to(at::kDouble) + exact.square()) * count);
    sums.narrow(0, 2 * channels, 1).fill_(count);
  }
  ranks(sums);
  const auto total = sums[2 * channels].item<double>();
  if (total == 0) {
    const auto none = at::zeros({channels}, y.options().dtype(at::kFloat));
    return {none, none + 1, 0};
  }
  const auto mean = sums.narrow(0, 0, channels) / total;
  const auto var = (sums.narrow(0, channels, channels) / total - mean.square()).clamp_min(0);
  return {mean.to(at::kFloat), var.to(at::kFloat), total};
}

class SyncBatchNorm : public torch::autograd::Function<SyncBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& weight,
                            const at::Tensor& bias, const Statistics& all, double epsilon,
                            RankSum* ranks) {
    context->save_for_backward({y, weight, all.mean, all.var});
    context->saved_data["count"] = all.count;
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(ranks);
    if (y.numel() == 0) return at::empty_like(y);
    return at::batch_norm(y, weight, bias, all.mean, all.var, /*training=*/false, 0, epsilon,
                          /*cudnn_enabled=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &y = saved[0], &weight = saved[1], &mean = saved[2], &var = saved[3];
    const auto count = context->saved_data["count"].toDouble();
    const auto epsilon = context->saved_data["epsilon"].toDouble();
    auto& ranks = *reinterpret_cast<RankSum*>(context->saved_data["ranks"].toInt());
    const bool has_values = y.numel() > 0;  // libtorch's kernel divides by the number of values
    at::Tensor dy = gradients[0], dweight = at::zeros_like(mean), dbias = at::zeros_like(mean);
    // Gradients with constant statistics first; then the statistics' dependence on y is added.
    if (has_values)
      std::tie(dy, dweight, dbias) =
          at::native_batch_norm_backward(gradients[0], y, weight, mean, var, {}, {},
                                         /*train=*/false, epsilon, {true, true, true});
    const auto sums = at::cat({dbias, dweight}).to(at::kDouble);
    ranks(sums);
    if (has_values) {
      const auto channels = y.size(1);
      const auto shaped = [&](const at::Tensor& values) {
        return values.to(at::kFloat).view({1, channels, 1, 1});
      };
      const auto inverse = at::rsqrt(var + epsilon);
      const auto scale = weight * inverse / count;
      const auto of_mean = shaped(sums.narrow(0, 0, channels) * scale),
                 of_var = shaped(sums.narrow(0, channels, channels) * scale * inverse);
      dy.sub_((y - shaped(mean)).mul_(of_var).add_(of_mean));
    }
    return {dy, dweight, dbias, {}, {}, {}};
  }
};

}  // namespace

at::Tensor sync_batch_norm(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, RankSum& ranks) {
  Statistics all;
  {
    const at::NoGradGuard no_graph;
    all = over_all_ranks(y.detach(), ranks);
  }
  if (at::GradMode::is_enabled() && all.count > 1 && ranks.updates_statistics()) {
    const at::NoGradGuard no_graph;
    norm.running_mean.mul_(1 - momentum).add_(all.mean, momentum);
    norm.running_var.mul_(1 - momentum).add_(all.var, momentum * all.count / (all.count - 1));
  }
  return SyncBatchNorm::apply(y, norm.weight, norm.bias, all, epsilon, &ranks);
}

}  // namespace millrace
