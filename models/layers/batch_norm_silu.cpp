#include "millrace/models/layers/batch_norms.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "millrace/models/ops/cpu/channels_last.h"
#include "millrace/models/ops/cpu/simd.h"
#include "millrace/models/ops/cpu/vector_maths.h"

namespace millrace {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Tensors3 = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// Returns the sigmoid of z, clamped to -87 .. 87. It works on bits, as comparisons of floats
/// prevent vectorization.
inline float sigmoid(float z) {
  constexpr int kSign = std::numeric_limits<int>::min();
  const int bits = std::bit_cast<int>(z);
  const int size = std::min(bits & ~kSign, std::bit_cast<int>(87.0F));
  return 1 / (1 + exponential(std::bit_cast<float>(size | (~bits & kSign))));
}

/// Numbers by channel, (C) each.
struct Affine {
  std::vector<float> scale, shift;  // z = scale y + shift
};

/// A tensor (N, C, H, W), channels last, as rows of C values. Blocks of rows fit in the cache. They
/// do not depend on the number of threads, and neither do sums over them.
struct Rows {
  explicit Rows(const at::Tensor& y) : channels(y.size(1)), count(y.numel() / y.size(1)) {}

  std::int64_t channels, count;
  std::int64_t in_block = std::max<std::int64_t>(1, 32768 / channels);
  std::int64_t blocks = (count + in_block - 1) / in_block;

  /// Calls work(block, index of its first value, number of rows) for each block, in parallel.
  template <class Work>
  void for_each_block(const Work& work) const {
    at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto block = begin; block < end; ++block)
        work(block, block * in_block * channels, std::min(in_block, count - block * in_block));
    });
  }
};

MILLRACE_SIMD
void add_rows(const float* __restrict y, std::int64_t rows, std::int64_t channels,
              float* __restrict sum) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels)
    for (std::int64_t c = 0; c < channels; ++c) sum[c] += y[c];
}

MILLRACE_SIMD
void add_squares(const float* __restrict y, std::int64_t rows, std::int64_t channels,
                 const float* __restrict mean, float* __restrict sum) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels)
    for (std::int64_t c = 0; c < channels; ++c) sum[c] += (y[c] - mean[c]) * (y[c] - mean[c]);
}

MILLRACE_SIMD
void activate(const float* __restrict y, std::int64_t rows, std::int64_t channels,
              const float* __restrict scale, const float* __restrict shift,
              float* __restrict result) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels, result += channels)
    for (std::int64_t c = 0; c < channels; ++c) {
      const float z = scale[c] * y[c] + shift[c];
      result[c] = z * sigmoid(z);
    }
}

/// Computes the gradient dz of the norm's output, and adds its sums with and without the factor y -
/// mean.
MILLRACE_SIMD
void through_silu(const float* __restrict gradient, const float* __restrict y, std::int64_t rows,
                  std::int64_t channels, const float* __restrict scale,
                  const float* __restrict shift, const float* __restrict mean, float* __restrict dz,
                  float* __restrict sum, float* __restrict with_y) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels, gradient += channels, dz += channels)
    for (std::int64_t c = 0; c < channels; ++c) {
      const float z = scale[c] * y[c] + shift[c], s = sigmoid(z);
      const float d = gradient[c] * s * (1 + z * (1 - s));
      dz[c] = d;
      sum[c] += d;
      with_y[c] += d * (y[c] - mean[c]);
    }
}

/// Replaces dz by a dz + b (y - mean) + c.
MILLRACE_SIMD
void through_norm(const float* __restrict y, std::int64_t rows, std::int64_t channels,
                  const float* __restrict a, const float* __restrict b, const float* __restrict c0,
                  const float* __restrict mean, float* __restrict dz) {
  for (std::int64_t row = 0; row < rows; ++row, y += channels, dz += channels)
    for (std::int64_t c = 0; c < channels; ++c)
      dz[c] = a[c] * dz[c] + b[c] * (y[c] - mean[c]) + c0[c];
}

/// Returns mean and variance by channel, fp32: computed for each block, then combined (Chan et al.
/// 1979).
std::pair<at::Tensor, at::Tensor> statistics_of(const at::Tensor& y) {
  const Rows rows(y);
  const auto channels = static_cast<std::size_t>(rows.channels);
  const auto* const values = y.const_data_ptr<float>();
  std::vector<float> means(static_cast<std::size_t>(rows.blocks) * channels), squares(means.size());
  rows.for_each_block([&](std::int64_t block, std::int64_t first, std::int64_t count) {
    auto* const mean = means.data() + static_cast<std::size_t>(block) * channels;
    add_rows(values + first, count, rows.channels, mean);
    for (std::size_t c = 0; c < channels; ++c) mean[c] /= static_cast<float>(count);
    add_squares(values + first, count, rows.channels, mean,
                squares.data() + static_cast<std::size_t>(block) * channels);
  });
  const auto mean = at::empty({rows.channels}, y.options()), var = at::empty_like(mean);
  for (std::size_t c = 0; c < channels; ++c) {
    double seen = 0, middle = 0, spread = 0;
    for (std::int64_t block = 0; block < rows.blocks; ++block) {
      const auto at = static_cast<std::size_t>(block) * channels + c;
      const auto count =
          static_cast<double>(std::min(rows.in_block, rows.count - block * rows.in_block));
      const double away = means[at] - middle;
      middle += away * count / (seen + count);
      spread += squares[at] + away * away * seen * count / (seen + count);
      seen += count;
    }
    mean.mutable_data_ptr<float>()[c] = static_cast<float>(middle);
    var.mutable_data_ptr<float>()[c] = static_cast<float>(spread / seen);
  }
  return {mean, var};
}

Affine affine_of(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& mean,
                 const at::Tensor& inverse) {
  Affine affine;
  const auto *w = weight.const_data_ptr<float>(), *b = bias.const_data_ptr<float>(),
             *m = mean.const_data_ptr<float>(), *i = inverse.const_data_ptr<float>();
  for (std::int64_t c = 0; c < weight.numel(); ++c) {
    affine.scale.push_back(w[c] * i[c]);
    affine.shift.push_back(b[c] - m[c] * affine.scale.back());
  }
  return affine;
}

/// Takes y on the CPU, fp32, channels last; returns the result, mean and 1 / deviation.
Tensors3 forward_on_cpu(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                        double epsilon, bool follows) {
  const Rows rows(y);
  const auto [mean, var] = statistics_of(y);
  if (follows) {
    const auto count = static_cast<double>(rows.count);
    norm.running_mean.mul_(1 - momentum).add_(mean, momentum);
    norm.running_var.mul_(1 - momentum).add_(var, momentum * count / (count - 1));
  }
  const auto inverse = (var + epsilon).rsqrt();
  const auto affine = affine_of(norm.weight, norm.bias, mean, inverse);
  auto result = at::empty_like(y);
  const auto* const from = y.const_data_ptr<float>();
  auto* const to = result.mutable_data_ptr<float>();
  rows.for_each_block([&](std::int64_t, std::int64_t first, std::int64_t count) {
    activate(from + first, count, rows.channels, affine.scale.data(), affine.shift.data(),
             to + first);
  });
  return {result, mean, inverse};
}

/// Returns the gradients of y, weight and bias.
Tensors3 backward_on_cpu(const at::Tensor& gradient, const at::Tensor& y, const at::Tensor& weight,
                         const at::Tensor& bias, const at::Tensor& mean,
                         const at::Tensor& inverse) {
  const Rows rows(y);
  const auto channels = static_cast<std::size_t>(rows.channels);
  const auto affine = affine_of(weight, bias, mean, inverse);
  auto dy = at::empty_like(y);
  const auto *const g = gradient.const_data_ptr<float>(), *const from = y.const_data_ptr<float>(),
                    *const middle = mean.const_data_ptr<float>();
  auto* const to = dy.mutable_data_ptr<float>();
  std::vector<float> sums(static_cast<std::size_t>(rows.blocks) * channels), with_y(sums.size());
  rows.for_each_block([&](std::int64_t block, std::int64_t first, std::int64_t count) {
    const auto at = static_cast<std::size_t>(block) * channels;
    through_silu(g + first, from + first, count, rows.channels, affine.scale.data(),
                 affine.shift.data(), middle, to + first, sums.data() + at, with_y.data() + at);
  });
  const auto dweight = at::empty_like(weight), dbias = at::empty_like(bias);
  const auto* const i = inverse.const_data_ptr<float>();
  std::vector<float> of_y(channels), constant(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    double sum = 0, product = 0;
    for (auto at = c; at < sums.size(); at += channels) sum += sums[at], product += with_y[at];
    const double count = static_cast<double>(rows.count), scale = affine.scale[c];
    dweight.mutable_data_ptr<float>()[c] = static_cast<float>(product * i[c]);
    dbias.mutable_data_ptr<float>()[c] = static_cast<float>(sum);
    of_y[c] = static_cast<float>(-scale * product * i[c] * i[c] / count);
    constant[c] = static_cast<float>(-scale * sum / count);
  }
  rows.for_each_block([&](std::int64_t, std::int64_t first, std::int64_t count) {
    through_norm(from + first, count, rows.channels, affine.scale.data(), of_y.data(),
                 constant.data(), middle, to + first);
  });
  return {dy, dweight, dbias};
}

bool is_plain(const at::Tensor& y) {
  return y.is_cpu() && y.scalar_type() == at::kFloat && y.is_contiguous(kChannelsLast) &&
         y.numel() > y.size(1);
}

class BatchNormSilu : public torch::autograd::Function<BatchNormSilu> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& y, const at::Tensor& weight,
                            const at::Tensor& bias, const BatchNormTensors& norm, double momentum,
                            double epsilon, bool follows) {
    using Optional = std::optional<at::Tensor>;
    auto [z, mean, inverse] =
        is_plain(y) ? forward_on_cpu(y, norm, momentum, epsilon, follows)
                    : at::native_batch_norm(y, weight, bias,
                                            follows ? Optional(norm.running_mean) : std::nullopt,
                                            follows ? Optional(norm.running_var) : std::nullopt,
                                            /*training=*/true, momentum, epsilon);
    context->save_for_backward({y, weight, bias, mean, inverse});
    context->saved_data["epsilon"] = epsilon;
    return is_plain(y) ? z : at::silu_(z);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &y = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3],
               &inverse = saved[4];
    const auto [dy, dweight, dbias] =
        is_plain(y) ? backward_on_cpu(gradients[0].contiguous(kChannelsLast), y, weight, bias, mean,
                                      inverse)
                    : backward_of(gradients[0], y, weight, bias, mean, inverse,
                                  context->saved_data["epsilon"].toDouble());
    return {dy, dweight, dbias, {}, {}, {}, {}};
  }

 private:
  static Tensors3 backward_of(const at::Tensor& gradient, const at::Tensor& y,
                              const at::Tensor& weight, const at::Tensor& bias,
                              const at::Tensor& mean, const at::Tensor& inverse, double epsilon) {
    const auto shaped = [](const at::Tensor& values) { return values.view({1, -1, 1, 1}); };
    const auto scale = weight * inverse;
    const auto z = (y * shaped(scale)).add_(shaped(bias - mean * scale)).to(y.scalar_type());
    return at::native_batch_norm_backward(at::silu_backward(gradient, z), y, weight, {}, {}, mean,
                                          inverse, /*train=*/true, epsilon, {true, true, true});
  }
};

}  // namespace

at::Tensor batch_norm_silu(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, bool follows) {
  return BatchNormSilu::apply(y, norm.weight, norm.bias, norm, momentum, epsilon, follows);
}

}  // namespace millrace
