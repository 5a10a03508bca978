#include "millrace/models/ops/focal_loss.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "millrace/models/ops/observed.h"

namespace millrace {
namespace {

constexpr std::int64_t kRows = 256;  // summed together: the order of the sum is that of the rows

/// Loss and slope at the logit `x` of a class that is there or not.
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
double loss_of(const at::Tensor& logits, const at::Tensor& classes, const FocalOptions& options) {
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
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

template <class T>
void gradient_of(const at::Tensor& logits, const at::Tensor& classes, const FocalOptions& options,
                 double factor, at::Tensor& gradient) {
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
}

class FocalLoss : public torch::autograd::Function<FocalLoss> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& classes, const FocalOptions& options) {
    const auto x = logits.contiguous(), own = classes.contiguous();
    context->save_for_backward({x, own});
    context->saved_data["alpha"] = options.alpha;
    context->saved_data["gamma"] = options.gamma;
    const bool fine = x.scalar_type() == at::kDouble;
    auto loss = at::empty({}, x.options());
    const Observed observed("focal_loss", x, loss);
    if (fine)
      *loss.mutable_data_ptr<double>() = loss_of<double>(x, own, options);
    else
      *loss.mutable_data_ptr<float>() = static_cast<float>(loss_of<float>(x, own, options));
    return loss;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &own = saved[1];
    const FocalOptions options{context->saved_data["alpha"].toDouble(),
                               context->saved_data["gamma"].toDouble()};
    const double factor = grads[0].item<double>();
    auto gradient = at::empty_like(x);
    const Observed observed("focal_loss_backward", {x, grads[0]}, gradient);
    if (x.scalar_type() == at::kDouble)
      gradient_of<double>(x, own, options, factor, gradient);
    else
      gradient_of<float>(x, own, options, factor, gradient);
    return {gradient, at::Tensor(), at::Tensor()};
  }
};

/// By a device's operators, gradients too.
at::Tensor focal_loss_there(const at::Tensor& logits, const at::Tensor& classes,
                            const FocalOptions& options) {
  const auto own = (at::arange(logits.size(1), classes.options()) == classes.unsqueeze(1));
  const auto there = own.to(logits.scalar_type());
  const auto sign = there * 2 - 1;  // of the logit that says what is right
  const auto wrong = at::sigmoid(-logits * sign);
  const auto weight = there * (2 * options.alpha - 1) + (1 - options.alpha);
  const auto loss = weight * wrong.pow(options.gamma) * at::softplus(-logits * sign);
  return loss.masked_fill((classes == kIgnored).unsqueeze(1), 0).sum();
}

}  // namespace

at::Tensor focal_loss_sum(const at::Tensor& logits, const at::Tensor& classes,
                          const FocalOptions& options) {
  const auto type = logits.scalar_type();
  if (logits.dim() != 2 || classes.dim() != 1 || classes.size(0) != logits.size(0) ||
      classes.scalar_type() != at::kLong || (type != at::kFloat && type != at::kDouble))
    throw std::invalid_argument(
        "focal_loss_sum: logits must be (T, K) float or double and classes (T) int64");
  if (!logits.is_cpu()) return focal_loss_there(logits, classes, options);
  return FocalLoss::apply(logits, classes, options);
}

}  // namespace millrace
