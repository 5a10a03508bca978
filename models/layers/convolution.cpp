#include "millrace/models/layers/convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_add_relu.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "millrace/models/detector/precision.h"
#include "millrace/models/layers/relu.h"
#include "millrace/models/ops/cpu/channels_last.h"
#include "millrace/models/ops/cpu/sparse_backward.h"
#include "millrace/models/ops/cpu/touched_pixels.h"
#include "millrace/models/ops/cpu/winograd.h"
#include "millrace/models/ops/dispatched.h"

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalTensor = std::optional<at::Tensor>;

/// libtorch's operator around oneDNN; absent if libtorch was built without it.
using Pointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                             at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, std::int64_t,
                             std::string_view, Scalars, std::optional<std::string_view>);
std::optional<c10::TypedOperatorHandle<Pointwise>> find_onednn() {
  const auto found =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_convolution_pointwise", ""});
  if (!found) return std::nullopt;
  return found->typed<Pointwise>();
}

/// Adds the bias (C) of any type to y (N, C, H, W), then `add`, then applies ReLU, each if present:
/// in place and in float.
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

/// Convolves on a device other than the CPU, with the epilogue as one pass over the output.
at::Tensor forward_there(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const Convolution& c, const After& after) {
  static const auto op = dispatched<decltype(finish_on_cpu)>("millrace::finish_convolution_");
  const bool relu = after.activation == Activation::relu;
  auto y = at::conv2d(x, weight, /*bias=*/{}, c.stride, c.padding, 1, c.groups)
               .contiguous(kChannelsLast);
  if (bias.defined() || after.add.defined() || relu)
    op.call(
        y, if_defined(bias),
        after.add.defined() ? OptionalTensor(after.add.contiguous(kChannelsLast)) : std::nullopt,
        relu);
  return after.activation == Activation::silu ? at::silu_(y) : y;
}

/// Returns oneDNN's name of an activation.
const char* onednn_name(Activation activation) {
  if (activation == Activation::none) return "none";
  return activation == Activation::relu ? "relu" : "swish";
}

bool onednn_takes(at::ScalarType type) { return type == at::kFloat || type == at::kBFloat16; }

bool fits_winograd(at::TensorList maps, const at::Tensor& weight, const Convolution& c) {
  return c.stride == 1 && c.padding == 1 && c.groups == 1 && winograd_fits(maps, weight);
}

/// Convolves by oneDNN, if possible. (oneDNN can fuse the sum too, at three times the cost.)
at::Tensor forward_directly(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const Convolution& c, const After& after) {
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

/// Computes convolution and epilogue of one or several maps with `weight` instead of the
/// convolution's own. All tensors but the bias have one type. `add`: empty, or one for each map.
std::vector<at::Tensor> forward(at::TensorList maps, const at::Tensor& weight,
                                const at::Tensor& own_bias, const Convolution& c,
                                at::TensorList add, Activation activation) {
  std::vector<at::Tensor> results;
  const bool is_cpu = maps[0].is_cpu();
  const auto bias = own_bias.defined() && is_cpu ? own_bias.to(maps[0].scalar_type()) : own_bias;
  if (fits_winograd(maps, weight, c)) {
    results = winograd(maps, weight, bias, add, activation == Activation::relu);
    if (activation == Activation::silu)
      for (auto& y : results) at::silu_(y);
    return results;
  }
  for (std::size_t i = 0; i < maps.size(); ++i)
    results.push_back((is_cpu ? forward_directly : forward_there)(
        maps[i], weight, bias, c, {add.empty() ? at::Tensor() : add[i], activation}));
  return results;
}

at::Tensor scaled(const at::Tensor& weight, const at::Tensor& scale) {
  return scale.defined() ? weight * scale.view({-1, 1, 1, 1}) : weight;
}

using Gradients = std::tuple<std::vector<at::Tensor>, at::Tensor, at::Tensor>;

/// Computes the gradients by libtorch, map by map.
Gradients backward_directly(at::TensorList gradients, at::TensorList maps, const at::Tensor& weight,
                            const Convolution& c, std::array<bool, 3> wanted) {
  const std::array strides{c.stride, c.stride}, paddings{c.padding, c.padding}, ones{1L, 1L},
      none{0L, 0L};
  const std::array<std::int64_t, 1> biases{weight.size(0)};
  Gradients sums;
  const auto add = [](at::Tensor& sum, const at::Tensor& own) {
    sum = sum.defined() ? sum.add_(own) : own;
  };
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const auto [dx, dw, db] =
        at::convolution_backward(gradients[i], maps[i], weight, at::OptionalIntArrayRef(biases),
                                 strides, paddings, ones, false, none, c.groups, wanted);
    if (wanted[0]) std::get<0>(sums).push_back(dx);
    if (wanted[1]) add(std::get<1>(sums), dw);
    if (wanted[2]) add(std::get<2>(sums), db);
  }
  return sums;
}

/// Computes the `wanted` gradients of the convolution's maps, weight and bias, with `weight`
/// instead of its own.
Gradients backward_of_sums(at::TensorList gradients, at::TensorList maps, const at::Tensor& weight,
                           const Convolution& c, std::array<bool, 3> wanted) {
  const bool fast = fits_winograd(maps, weight, c);
  if (maps[0].is_cpu() && onednn_takes(maps[0].scalar_type()) && c.groups == 1 &&
      std::ranges::all_of(maps, [](const at::Tensor& x) { return x.numel() > 0; })) {
    const std::int64_t few =
        fast ? 32 : 4;  // sparse if at most 1 in this many pixels has a gradient
    std::int64_t pixels = 0, with_gradient = 0;
    std::vector<at::Tensor> slopes, inputs;
    std::vector<TouchedPixels> touched;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      slopes.push_back(gradients[i].contiguous(kChannelsLast));
      inputs.push_back(maps[i].contiguous(kChannelsLast));
      touched.push_back(touched_pixels(slopes[i]));
      pixels += std::ssize(touched[i].is);
      with_gradient += touched[i].count;
    }
    if (with_gradient * few <= pixels)
      return sparse_backward(slopes, touched, inputs, weight, c.stride, c.padding, wanted);
    if (fast) return winograd_backward(slopes, inputs, weight, wanted);
  }
  return backward_directly(gradients, maps, weight, c, wanted);
}

class Convolve : public torch::autograd::Function<Convolve> {
 public:
  /// Tensors that may need a gradient are separate arguments; an undefined one must be nullopt.
  /// `add`: empty, or one for each map.
  static variable_list forward(AutogradContext* context, at::TensorList maps,
                               const at::Tensor& weight, const OptionalTensor& bias,
                               at::TensorList add, const Convolution& c, Activation activation) {
    const auto results = millrace::forward(maps, scaled(weight, c.scale).to(maps[0].scalar_type()),
                                           bias.value_or(at::Tensor()), c, add, activation);
    // The scaled and cast weight is computed again in the backward pass: over all layers it takes
    // as much memory as their weights do.
    variable_list kept{weight, c.scale};
    kept.insert(kept.end(), maps.begin(), maps.end());
    if (activation == Activation::relu) kept.insert(kept.end(), results.begin(), results.end());
    context->save_for_backward(std::move(kept));
    context->saved_data["stride"] = c.stride;
    context->saved_data["padding"] = c.padding;
    context->saved_data["groups"] = c.groups;
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["add"] = !add.empty();
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &weight = saved[0], &scale = saved[1];
    const auto count = gradients.size();
    const auto maps = at::TensorList(saved).slice(2, count),
               results = at::TensorList(saved).slice(2 + count);  // for a ReLU
    const auto stride = context->saved_data["stride"].toInt(),
               padding = context->saved_data["padding"].toInt(),
               groups = context->saved_data["groups"].toInt();
    // Tensors that are nullopt have no index.
    const std::size_t bias = context->saved_data["bias"].toBool(),
                      add = context->saved_data["add"].toBool();
    const auto needs = [&](std::size_t input) { return context->needs_input_grad(input); };
    for (std::size_t i = 0; i < results.size(); ++i)
      gradients[i] = before_relu(std::move(gradients[i]), results[i]);
    bool of_maps = false;
    for (std::size_t i = 0; i < count; ++i) of_maps |= needs(i);
    auto [dx, dw, db] = backward_of_sums(
        gradients, maps, scaled(weight, scale).to(maps[0].scalar_type()),
        {{}, {}, {}, stride, padding, groups}, {of_maps, needs(count), bias && needs(count + 1)});
    if (dw.defined()) {
      dw = dw.to(weight.scalar_type());
      if (scale.defined()) dw.mul_(scale.view({-1, 1, 1, 1}));
    }
    if (db.defined()) db = db.to(weight.scalar_type());
    dx.resize(count);
    auto all = std::move(dx);
    all.insert(all.end(), {dw, db});
    for (std::size_t i = 0; add && i < count; ++i)
      all.push_back(needs(count + 1 + bias + i) ? gradients[i] : at::Tensor());
    all.resize(all.size() + 2);  // for Convolution and Activation
    return all;
  }
};

/// `add`: empty, or one for each map.
std::vector<at::Tensor> convolve_all(at::TensorList maps, const Convolution& c, at::TensorList add,
                                     Activation activation) {
  if (activation == Activation::silu && at::GradMode::is_enabled()) {
    auto results = convolve_all(maps, c, add, Activation::none);
    for (auto& y : results) y = at::silu(y);
    return results;
  }
  const auto type = compute_type(maps[0]);
  const auto typed = [&](at::TensorList tensors) {
    std::vector<at::Tensor> result;
    for (const auto& tensor : tensors) result.push_back(tensor.to(type));
    return result;
  };
  return Convolve::apply(at::TensorList(typed(maps)), c.weight, if_defined(c.bias),
                         at::TensorList(typed(add)), c, activation);
}

}  // namespace

at::Tensor finish(at::Tensor y, const After& after) {
  if (after.add.defined()) y.add_(after.add);
  if (after.activation == Activation::relu) at::relu_(y);
  if (after.activation == Activation::silu)
    return at::GradMode::is_enabled() ? at::silu(y) : at::silu_(y);
  return y;
}

at::Tensor convolve(const at::Tensor& x, const Convolution& c, const After& after) {
  const auto add = after.add.defined() ? at::TensorList(after.add) : at::TensorList();
  return convolve_all(at::TensorList(x), c, add, after.activation)[0];
}

std::vector<at::Tensor> convolve(at::TensorList maps, const Convolution& c, Activation activation) {
  return convolve_all(maps, c, {}, activation);
}

}  // namespace millrace
