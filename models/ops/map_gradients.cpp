#include "millrace/models/ops/map_gradients.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

c10::intrusive_ptr<MapGradients> gradients_in(AutogradContext& context) {
  return c10::dynamic_intrusive_pointer_cast<MapGradients>(
      context.saved_data["gradients"].toCapsule());
}

/// Its backward pass runs after all uses of the maps have added their gradients.
class Share : public torch::autograd::Function<Share> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList maps) {
    auto gradients = c10::make_intrusive<MapGradients>();
    gradients->sums.resize(maps.size());
    context->saved_data["gradients"] = c10::IValue::make_capsule(std::move(gradients));
    context->saved_data["type"] = static_cast<std::int64_t>(maps[0].scalar_type());
    context->set_materialize_grads(false);
    return maps.vec();
  }

  /// `others`: gradients of uses other than roi_align.
  static variable_list backward(AutogradContext* context, const variable_list& others) {
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    const auto gradients = gradients_in(*context);
    variable_list result;
    for (std::size_t i = 0; i < others.size(); ++i) {
      auto sum = std::exchange(gradients->sums[i], {});
      if (sum.defined()) sum = sum.to(type);
      if (sum.defined() && others[i].defined()) sum.add_(others[i]);
      result.push_back(sum.defined() ? std::move(sum) : others[i]);
    }
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> with_shared_gradients(const std::vector<at::Tensor>& maps) {
  return maps[0].is_cpu() && maps[0].requires_grad() ? Share::apply(at::TensorList(maps)) : maps;
}

c10::intrusive_ptr<MapGradients> shared_gradients(at::TensorList maps) {
  const auto node = maps[0].grad_fn();
  auto* const share = dynamic_cast<torch::autograd::CppNode<Share>*>(node.get());
  if (!share) return nullptr;
  for (std::size_t i = 0; i < maps.size(); ++i)
    if (maps[i].grad_fn() != node || maps[i].output_nr() != static_cast<std::int64_t>(i))
      return nullptr;
  return gradients_in(share->ctx_);
}

}  // namespace millrace
