#include "millrace/models/ops/focal_loss.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "millrace/models/ops/dispatched.h"

namespace millrace {
namespace {

constexpr std::int64_t kRows = 256;  // summed together, in their order

/// Loss and slope at the logit `x` of a class that is present or not.
template <class T>
struct Focal {
  T value, slope;

  Focal(T x, bool there, const FocalOptions& options) {
    const T z = there ? x : -x;
    const T tail = std::exp(-std::abs(z));
    const T right = z >= 0 ? 1 / (1 + tail) : tail / (1 + tail);  // p_t
    const T wrong = z >= 0 ? tail / (1 + tail) : 1 / (1 + tail);
    const T entropy = std::log1p(tail) + std::max<T>(-z, 0);
    const auto gamma = static_cast<T>(options.gamma);
    const T weight = static_cast<T>(there ? options.alpha : 1 - options.alpha) *
                     (options.gamma == 2 ? wrong * wrong : std::pow(wrong, gamma));
    value = weight * entropy;
    slope = weight * (gamma * right * entropy + wrong) * (there ? -1 : 1);
  }
};

template <class T>
at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& classes,
                   const FocalOptions& options) {
  const auto rows = logits.size(0), columns = logits.size(1);
  const auto* x = logits.const_data_ptr<T>();
  const auto* own = classes.const_data_ptr<std::int64_t>();
  std::vector<double> sums(static_cast<std::size_t>((rows + kRows - 1) / kRows), 0);
  at::parallel_for(0, std::ssize(sums), 1, [&](std::int64_t first, std::int64_t last) {
    for (auto block = first; block < last; ++block) {
      double sum = 0;
      for (auto row = block * kRows; row < std::min(rows, (block + 1) * kRows); ++row) {
        if (own[row] == kIgnored) continue;
        for (std::int64_t k = 0; k < columns; ++k)
          sum += Focal<T>(x[row * columns + k], k == own[row], options).value;
      }
      sums[static_cast<std::size_t>(block)] = sum;
    }
  });
  auto loss = at::empty({}, logits.options());
  *loss.mutable_data_ptr<T>() = static_cast<T>(std::accumulate(sums.begin(), sums.end(), 0.0));
  return loss;
}

template <class T>
at::Tensor gradient_of(const at::Tensor& logits, const at::Tensor& classes,
                       const FocalOptions& options, double factor) {
  auto gradient = at::empty_like(logits);
  const auto columns = logits.size(1);
  const auto* x = logits.const_data_ptr<T>();
  const auto* own = classes.const_data_ptr<std::int64_t>();
  auto* out = gradient.mutable_data_ptr<T>();
  at::parallel_for(0, logits.size(0), kRows, [&](std::int64_t first, std::int64_t last) {
    for (auto row = first; row < last; ++row)
      for (std::int64_t k = 0; k < columns; ++k) {
        const auto i = row * columns + k;
        out[i] = own[row] == kIgnored
                     ? 0
                     : static_cast<T>(factor) * Focal<T>(x[i], k == own[row], options).slope;
      }
  });
  return gradient;
}

at::Tensor focal_loss_on_cpu(const at::Tensor& logits, const at::Tensor& classes, double alpha,
                             double gamma) {
  const auto x = logits.contiguous(), own = classes.contiguous();
  return x.scalar_type() == at::kDouble ? loss_of<double>(x, own, {alpha, gamma})
                                        : loss_of<float>(x, own, {alpha, gamma});
}

at::Tensor focal_loss_backward_on_cpu(const at::Tensor& factor, const at::Tensor& logits,
                                      const at::Tensor& classes, double alpha, double gamma) {
  const auto x = logits.contiguous(), own = classes.contiguous();
  const auto by = factor.item<double>();
  return x.scalar_type() == at::kDouble ? gradient_of<double>(x, own, {alpha, gamma}, by)
                                        : gradient_of<float>(x, own, {alpha, gamma}, by);
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) {
  library.impl("focal_loss", focal_loss_on_cpu);
  library.impl("focal_loss_backward", focal_loss_backward_on_cpu);
}

at::Tensor dispatch_focal_loss(const at::Tensor& logits, const at::Tensor& classes, double alpha,
                               double gamma) {
  static const auto op = dispatched<decltype(focal_loss_on_cpu)>("millrace::focal_loss");
  return op.call(logits, classes, alpha, gamma);
}

class FocalLoss : public torch::autograd::Function<FocalLoss> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& classes, double alpha, double gamma) {
    context->save_for_backward({logits, classes});
    context->saved_data["alpha"] = alpha;
    context->saved_data["gamma"] = gamma;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return dispatch_focal_loss(logits, classes, alpha, gamma);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    static const auto op =
        dispatched<decltype(focal_loss_backward_on_cpu)>("millrace::focal_loss_backward");
    const auto saved = context->get_saved_variables();
    return {op.call(grads[0], saved[0], saved[1], context->saved_data["alpha"].toDouble(),
                    context->saved_data["gamma"].toDouble()),
            {},
            {},
            {}};
  }
};

at::Tensor focal_loss_with_gradient(const at::Tensor& logits, const at::Tensor& classes,
                                    double alpha, double gamma) {
  return FocalLoss::apply(logits, classes, alpha, gamma);
}

TORCH_LIBRARY_IMPL(millrace, Autograd, library) {
  library.impl("focal_loss", focal_loss_with_gradient);
}

}  // namespace

at::Tensor focal_loss_sum(const at::Tensor& logits, const at::Tensor& classes,
                          const FocalOptions& options) {
  const auto type = logits.scalar_type();
  if (logits.dim() != 2 || classes.dim() != 1 || classes.size(0) != logits.size(0) ||
      classes.scalar_type() != at::kLong || (type != at::kFloat && type != at::kDouble))
    throw std::invalid_argument(
        "focal_loss_sum: logits must be (T, K) float or double and classes (T) int64");
  return dispatch_focal_loss(logits, classes, options.alpha, options.gamma);
}

}  // namespace millrace
