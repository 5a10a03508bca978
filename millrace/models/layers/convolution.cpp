#include "millrace/models/layers/convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_add_relu.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "millrace/detector/precision.h"
#include "millrace/models/layers/sparse_backward.h"
#include "millrace/models/layers/touched_pixels.h"
#include "millrace/models/layers/winograd.h"
#include "millrace/models/ops/dispatched.h"

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalTensor = std::optional<at::Tensor>;

/// libtorch's operator around oneDNN, if it was built with it.
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                             at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t,
                             std::string_view, Scalars, std::optional<std::string_view>);
std::optional<c10::TypedOperatorHandle<Pointwise>> find_onednn() {
  const auto found =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_convolution_pointwise", ""});
  if (!found) return std::nullopt;
  return found->typed<Pointwise>();
}

constexpr auto kLast = at::MemoryFormat::ChannelsLast;

/// The bias (C) of any type is added to y (N, C, H, W), then `add`, then comes a ReLU, where they
/// are wanted: in place and in float.
void finish_on_cpu(const at::Tensor& y, const OptionalTensor& bias, const OptionalTensor& add,
                   bool relu) {
  auto sum = y.to(at::kFloat);
  if (bias) sum = sum + bias->to(at::kFloat).view({1, -1, 1, 1});
  if (add) sum = sum + add->to(at::kFloat);
  y.copy_(relu ? sum.relu() : sum);
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("finish_convolution_", finish_on_cpu); }

OptionalTensor if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

/// On other devices than a CPU the epilogue is one pass over the output.
at::Tensor forward_there(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const Convolution& c, const After& after) {
  static const auto op = dispatched<decltype(finish_on_cpu)>("millrace::finish_convolution_");
  const bool relu = after.activation == Activation::relu;
  auto y = at::conv2d(x, weight, /*bias=*/{}, c.stride, c.padding, 1, c.groups).contiguous(kLast);
  if (bias.defined() || after.add.defined() || relu)
    op.call(y, if_defined(bias),
            after.add.defined() ? OptionalTensor(after.add.contiguous(kLast)) : std::nullopt, relu);
  return after.activation == Activation::silu ? at::silu_(y) : y;
}

/// What oneDNN calls an activation.
const char* onednn_name(Activation activation) {
  if (activation == Activation::none) return "none";
  return activation == Activation::relu ? "relu" : "swish";
}

bool onednn_takes(at::ScalarType type) { return type == at::kFloat || type == at::kBFloat16; }

bool fits_winograd(const at::Tensor& x, const at::Tensor& weight, const Convolution& c) {
  return c.stride == 1 && c.padding == 1 && c.groups == 1 && winograd_fits(x, weight);
}

/// Convolution and epilogue, of `weight` instead of the convolution's own; all but the bias are of
/// one type. (oneDNN can fuse the sum too, at three times the cost.)
at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& own_bias,
                   const Convolution& c, const After& after) {
  if (!x.is_cpu()) return forward_there(x, weight, own_bias, c, after);
  const auto bias = own_bias.defined() ? own_bias.to(x.scalar_type()) : own_bias;
  if (fits_winograd(x, weight, c)) return winograd(x, weight, bias, after);
  static const auto onednn = find_onednn();
  if (!onednn || !onednn_takes(x.scalar_type()) || x.numel() == 0)
    return finish(at::conv2d(x, weight, bias, c.stride, c.padding, 1, c.groups), after);
  const std::array paddings{c.padding, c.padding}, strides{c.stride, c.stride}, dilations{1L, 1L};
  const bool add = after.add.defined();
  auto y = onednn->call(x, weight, if_defined(bias), paddings, strides, dilations, c.groups,
                        onednn_name(add ? Activation::none : after.activation), Scalars(), "");
  if (add && after.activation == Activation::relu && y.scalar_type() == at::kFloat)
    return at::_add_relu_(y, after.add);
  return add ? finish(y, after) : y;
}

at::Tensor scaled(const at::Tensor& weight, const at::Tensor& scale) {
  return scale.defined() ? weight * scale.view({-1, 1, 1, 1}) : weight;
}

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// Those of a convolution's x, weight and bias that are `wanted`, of `weight` instead of its own.
Gradients backward_of_sums(const at::Tensor& gradient, const at::Tensor& x,
                           const at::Tensor& weight, const Convolution& c,
                           std::array<bool, 3> wanted) {
  const bool fast = fits_winograd(x, weight, c);
  if (x.is_cpu() && onednn_takes(x.scalar_type()) && c.groups == 1 && x.numel() > 0) {
    const std::int64_t few = fast ? 32 : 4;  // one of so many pixels
    const auto slopes = gradient.contiguous(kLast);
    const auto touched = touched_pixels(slopes);
    if (touched.count * few <= std::ssize(touched.is))
      return sparse_backward(slopes, touched, x.contiguous(kLast), weight, c, wanted);
    if (fast) return winograd_backward(slopes, x, weight, wanted);
  }
  const std::array strides{c.stride, c.stride}, paddings{c.padding, c.padding}, ones{1L, 1L},
      none{0L, 0L};
  const std::array<std::int64_t, 1> biases{weight.size(0)};
  return at::convolution_backward(gradient, x, weight, at::OptionalIntArrayRef(biases), strides,
                                  paddings, ones, false, none, c.groups, wanted);
}

/// The gradient before a ReLU that gave y: in place where nobody else sees it.
at::Tensor before_relu(at::Tensor gradient, const at::Tensor& y) {
  const bool own = gradient.use_count() == 1 && gradient.storage().use_count() == 1 &&
                   gradient.is_non_overlapping_and_dense();
  return own ? at::threshold_backward_out(gradient, gradient, y, 0)
             : at::threshold_backward(gradient, y, 0);
}

class Convolve : public torch::autograd::Function<Convolve> {
 public:
  /// Tensors that may need a gradient are separate arguments; undefined ones must be nullopt.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const OptionalTensor& bias, const OptionalTensor& add,
                            const Convolution& c, Activation activation) {
    const auto y =
        millrace::forward(x, scaled(weight, c.scale).to(x.scalar_type()),
                          bias.value_or(at::Tensor()), c, {add.value_or(at::Tensor()), activation});
    // The weight as it was used is computed again: of all layers together it takes as much memory
    // as their weights do.
    context->save_for_backward(
        {x, weight, c.scale, activation == Activation::relu ? y : at::Tensor()});
    context->saved_data["stride"] = c.stride;
    context->saved_data["padding"] = c.padding;
    context->saved_data["groups"] = c.groups;
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["add"] = add.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &scale = saved[2], &y = saved[3];
    const auto stride = context->saved_data["stride"].toInt(),
               padding = context->saved_data["padding"].toInt(),
               groups = context->saved_data["groups"].toInt();
    // Tensors that are nullopt have no index.
    const std::size_t bias = context->saved_data["bias"].toBool(),
                      add = context->saved_data["add"].toBool();
    const auto needs = [&](std::size_t input) { return context->needs_input_grad(input); };
    auto gradient = std::move(gradients[0]);
    if (y.defined()) gradient = before_relu(std::move(gradient), y);
    auto [dx, dw, db] = backward_of_sums(gradient, x, scaled(weight, scale).to(x.scalar_type()),
                                         {{}, {}, {}, stride, padding, groups},
                                         {needs(0), needs(1), bias && needs(2)});
    if (dw.defined()) {
      dw = dw.to(weight.scalar_type());
      if (scale.defined()) dw.mul_(scale.view({-1, 1, 1, 1}));
    }
    if (db.defined()) db = db.to(weight.scalar_type());
    return {dx, dw, db, add && needs(2 + bias) ? gradient : at::Tensor(), {}, {}};
  }
};

}  // namespace

at::Tensor finish(at::Tensor y, const After& after) {
  if (after.add.defined()) y.add_(after.add);
  if (after.activation == Activation::relu) at::relu_(y);
  if (after.activation == Activation::silu)
    return at::GradMode::is_enabled() ? at::silu(y) : at::silu_(y);
  return y;
}

at::Tensor convolve(const at::Tensor& x, const Convolution& c, const After& after) {
  const auto type = compute_type(x);
  if (after.activation == Activation::silu && at::GradMode::is_enabled())
    return at::silu(convolve(x, c, {after.add}));
  return Convolve::apply(x.to(type), c.weight, if_defined(c.bias),
                         if_defined(after.add.defined() ? after.add.to(type) : after.add), c,
                         after.activation);
}

}  // namespace millrace
