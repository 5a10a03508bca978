#include "millrace/models/layers/relu.h"

#include <ATen/ops/relu.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Relu : public torch::autograd::Function<Relu> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    auto y = x;
    at::relu_(y);
    context->mark_dirty({y});
    context->save_for_backward({y});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list& gradients) {
    return {before_relu(std::move(gradients[0]), context->get_saved_variables()[0])};
  }
};

}  // namespace

at::Tensor relu_in_place(const at::Tensor& x) { return Relu::apply(x); }

at::Tensor before_relu(at::Tensor gradient, const at::Tensor& y) {
  const bool own = gradient.use_count() == 1 && gradient.storage().use_count() == 1 &&
                   gradient.is_non_overlapping_and_dense();
  return own ? at::threshold_backward_out(gradient, gradient, y, 0)
             : at::threshold_backward(gradient, y, 0);
}

}  // namespace millrace
