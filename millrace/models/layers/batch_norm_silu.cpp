#include "millrace/models/layers/batch_norm_silu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class BatchNormSilu : public torch::autograd::Function<BatchNormSilu> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& weight,
                            const at::Tensor& bias, const BatchNormTensors& norm, double momentum,
                            double epsilon, bool follows) {
    using Optional = std::optional<at::Tensor>;
    auto [z, mean, inverse] = at::native_batch_norm(
        y, weight, bias, follows ? Optional(norm.running_mean) : std::nullopt,
        follows ? Optional(norm.running_var) : std::nullopt, /*training=*/true, momentum, epsilon);
    context->save_for_backward({y, weight, bias, mean, inverse});
    context->saved_data["epsilon"] = epsilon;
    return at::silu_(z);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &y = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3],
               &inverse = saved[4];
    const auto shaped = [](const at::Tensor& values) { return values.view({1, -1, 1, 1}); };
    const auto scale = weight * inverse;
    auto z = (y * shaped(scale)).add_(shaped(bias - mean * scale));
    z = at::silu_backward(gradients[0], z);
    const auto [dy, dweight, dbias] = at::native_batch_norm_backward(
        z, y, weight, {}, {}, mean, inverse, /*train=*/true,
        context->saved_data["epsilon"].toDouble(), {true, true, true});
    return {dy, dweight, dbias, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor batch_norm_silu(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, bool follows) {
  return BatchNormSilu::apply(y, norm.weight, norm.bias, norm, momentum, epsilon, follows);
}

}  // namespace millrace
