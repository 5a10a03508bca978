#include "millrace/models/ops/focal_loss.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "millrace/models/ops/cpu/simd.h"
#include "millrace/models/ops/cpu/vector_maths.h"
#include "millrace/models/ops/dispatched.h"

namespace millrace {
namespace {

constexpr std::int64_t kRows = 256;  // rows that are summed together, in order

/// Loss and its derivative at the logit `x` of a class that is present or absent.
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
    const T weight =
        static_cast<T>(there ? options.alpha : 1 - options.alpha) * std::pow(wrong, gamma);
    value = weight * entropy;
    slope = weight * (gamma * right * entropy + wrong) * (there ? -1 : 1);
  }
};

/// Focal for gamma = 2, vectorizable: it works on bits, as comparisons of floats prevent
/// vectorization. Its result does not depend on the compiler's order of sums.
struct SquaredFocal {
  float value, slope;

  SquaredFocal(float x, bool there, float alpha) {
    constexpr int kSign = std::numeric_limits<int>::min();
    const int bits = std::bit_cast<int>(x) ^ (there ? 0 : kSign), size_bits = bits & ~kSign;
    const float size = std::bit_cast<float>(size_bits);  // |z|, where z is x or -x
    const float tail =
        exponential(-std::bit_cast<float>(std::min(size_bits, std::bit_cast<int>(87.0F))));
    const float whole = 1 / (1 + tail), rest = tail * whole;
    const float right = bits < 0 ? rest : whole, wrong = bits < 0 ? whole : rest;
    // size - size keeps NaN.
    const float entropy = log_one_plus(tail) + (bits < 0 ? size : size - size);
    const float weight = (there ? alpha : 1 - alpha) * wrong * wrong;
    value = weight * entropy;
    const float steep = weight * (2 * right * entropy + wrong);
    slope = there ? -steep : steep;
  }
};

/// Adds the losses of a row of K logits to K sums.
template <class T>
void add_row(const T* x, std::int64_t columns, std::int64_t own, const FocalOptions& options,
             double* sums) {
  for (std::int64_t k = 0; k < columns; ++k) sums[k] += Focal<T>(x[k], k == own, options).value;
}

MILLRACE_SIMD_512
void add_squared_row(const float* __restrict x, int columns, int own, float alpha,
                     double* __restrict sums) {
  for (int k = 0; k < columns; ++k) sums[k] += SquaredFocal(x[k], k == own, alpha).value;
}

/// Writes the derivatives of a row, times `factor`.
template <class T>
void slopes_of_row(const T* x, std::int64_t columns, std::int64_t own, const FocalOptions& options,
                   T factor, T* out) {
  for (std::int64_t k = 0; k < columns; ++k)
    out[k] = factor * Focal<T>(x[k], k == own, options).slope;
}

MILLRACE_SIMD_512
void slopes_of_squared_row(const float* __restrict x, int columns, int own, float alpha,
                           float factor, float* __restrict out) {
  for (int k = 0; k < columns; ++k) out[k] = factor * SquaredFocal(x[k], k == own, alpha).slope;
}

template <class T>
at::Tensor loss_of(const at::Tensor& logits, const at::Tensor& classes,
                   const FocalOptions& options) {
  const auto rows = logits.size(0), columns = logits.size(1);
  const auto* x = logits.const_data_ptr<T>();
  const auto* own = classes.const_data_ptr<std::int64_t>();
  std::vector<double> totals(static_cast<std::size_t>((rows + kRows - 1) / kRows), 0);
  at::parallel_for(0, std::ssize(totals), 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> sums(static_cast<std::size_t>(columns));
    for (auto block = first; block < last; ++block) {
      std::ranges::fill(sums, 0.0);
      for (auto row = block * kRows; row < std::min(rows, (block + 1) * kRows); ++row) {
        if (own[row] == kIgnored) continue;
        const auto* const values = x + row * columns;
        if constexpr (std::is_same_v<T, float>)
          if (options.gamma == 2) {
            add_squared_row(values, static_cast<int>(columns), static_cast<int>(own[row]),
                            static_cast<float>(options.alpha), sums.data());
            continue;
          }
        add_row(values, columns, own[row], options, sums.data());
      }
      totals[static_cast<std::size_t>(block)] = std::accumulate(sums.begin(), sums.end(), 0.0);
    }
  });
  auto loss = at::empty({}, logits.options());
  *loss.mutable_data_ptr<T>() = static_cast<T>(std::accumulate(totals.begin(), totals.end(), 0.0));
  return loss;
}

template <class T>
at::Tensor gradient_of(const at::Tensor& logits, const at::Tensor& classes,
                       const FocalOptions& options, double by) {
  auto gradient = at::empty_like(logits);
  const auto columns = logits.size(1);
  const auto factor = static_cast<T>(by);
  const auto* x = logits.const_data_ptr<T>();
  const auto* own = classes.const_data_ptr<std::int64_t>();
  auto* out = gradient.mutable_data_ptr<T>();
  at::parallel_for(0, logits.size(0), kRows, [&](std::int64_t first, std::int64_t last) {
    for (auto row = first; row < last; ++row) {
      const auto* const values = x + row * columns;
      auto* const slopes = out + row * columns;
      if (own[row] == kIgnored) {
        std::fill_n(slopes, columns, T{});
        continue;
      }
      if constexpr (std::is_same_v<T, float>)
        if (options.gamma == 2) {
          slopes_of_squared_row(values, static_cast<int>(columns), static_cast<int>(own[row]),
                                static_cast<float>(options.alpha), factor, slopes);
          continue;
        }
      slopes_of_row(values, columns, own[row], options, factor, slopes);
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
