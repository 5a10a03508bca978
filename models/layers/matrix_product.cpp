#include "millrace/models/layers/matrix_product.h"

#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "millrace/models/detector/precision.h"
#include "millrace/models/ops/cpu/product.h"

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;

class Product : public torch::autograd::Function<Product> {
 public:
  /// An undefined bias must be passed as nullopt.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const OptionalTensor& bias, at::ScalarType type) {
    const auto input = x.to(type), used = weight.to(type);
    context->save_for_backward({input, used});
    context->saved_data["x"] = static_cast<std::int64_t>(x.scalar_type());
    context->saved_data["weight"] = static_cast<std::int64_t>(weight.scalar_type());
    context->saved_data["bias"] = bias.has_value();
    return times_transposed(input, used, bias ? bias->to(type) : at::Tensor());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1];
    const auto& gradient = gradients[0];
    const auto type_of = [&](const char* name) {
      return static_cast<at::ScalarType>(context->saved_data[name].toInt());
    };
    at::Tensor dx, dw, db;
    if (context->needs_input_grad(0)) dx = times_transposed(gradient, weight.t()).to(type_of("x"));
    if (context->needs_input_grad(1))
      dw = times_transposed(gradient.t(), x.t()).to(type_of("weight"));
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2))
      db = gradient.sum(0).to(type_of("weight"));
    return {dx, dw, db, {}};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto type = compute_type(x);
  if (!onednn_takes(x, type)) return at::linear(x, weight, bias);
  const auto product = [&](const at::Tensor& rows) {
    return Product::apply(rows, weight, bias.defined() ? OptionalTensor(bias) : std::nullopt, type);
  };
  if (x.dim() == 2) return product(x);  // no view, since changing a view in place copies it
  auto shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return product(x.reshape({-1, x.size(-1)})).view(shape);
}

}  // namespace millrace
