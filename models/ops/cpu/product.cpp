#include "millrace/models/ops/cpu/product.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/linear.h>

#include <optional>
#include <string_view>

namespace millrace {
namespace {

using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalTensor = std::optional<at::Tensor>;

/// libtorch's operator around oneDNN; absent if libtorch was built without it.
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                             std::string_view, Scalars, std::optional<std::string_view>);
using Handle = std::optional<c10::TypedOperatorHandle<Pointwise>>;

const Handle& onednn() {
  static const Handle handle = [] {
    const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
    return found ? Handle(found->typed<Pointwise>()) : std::nullopt;
  }();
  return handle;
}

}  // namespace

bool onednn_takes(const at::Tensor& x, at::ScalarType type) {
  return x.is_cpu() && (type == at::kFloat || type == at::kBFloat16) && x.numel() > 0 && onednn();
}

at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!onednn_takes(x, x.scalar_type())) return at::linear(x, weight, bias);
  return onednn()->call(x, weight, bias.defined() ? OptionalTensor(bias) : std::nullopt, "none",
                        Scalars(), "");
}

}  // namespace millrace
