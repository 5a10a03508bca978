#include "millrace/models/ops/cpu/sparse_backward.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <cstddef>
#include <cstring>

#include "millrace/models/ops/cpu/channels_last.h"
#include "millrace/models/ops/cpu/product.h"

namespace millrace {
namespace {

/// Numbers of rows are rounded up to a multiple of this, since oneDNN compiles a kernel for each
/// shape.
constexpr std::int64_t kRowsStep = 64;

/// Returns the indices of the touched pixels, padded with -1.
at::Tensor rows_of(const TouchedPixels& touched) {
  auto rows = at::full({(touched.count + kRowsStep - 1) / kRowsStep * kRowsStep}, -1, at::kLong);
  auto* row = rows.mutable_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < touched.is.size(); ++i)
    if (touched.is[i]) *row++ = static_cast<std::int64_t>(i);
  return rows;
}

using Places = c10::ArrayRef<std::int64_t>;

/// Returns the input pixels under the kernel at each of the output pixels `rows`, (rows, k, k); -1
/// = outside.
std::vector<std::int64_t> under_kernel(Places rows, const at::Tensor& gradient, const at::Tensor& x,
                                       std::int64_t kernel, std::int64_t stride,
                                       std::int64_t padding) {
  const auto out_height = gradient.size(2), out_width = gradient.size(3);
  const auto height = x.size(2), width = x.size(3);
  std::vector<std::int64_t> places;
  places.reserve(rows.size() * static_cast<std::size_t>(kernel * kernel));
  for (const auto row : rows) {
    const auto image = row / out_width / out_height;
    const auto top = row / out_width % out_height * stride - padding,
               left = row % out_width * stride - padding;
    for (auto y = top; y < top + kernel; ++y)
      for (auto column = left; column < left + kernel; ++column) {
        const bool inside = row >= 0 && y >= 0 && y < height && column >= 0 && column < width;
        places.push_back(inside ? (image * height + y) * width + column : -1);
      }
  }
  return places;
}

/// Returns the channels of these pixels of a map in float, (places, C); zeros for -1.
at::Tensor gather(const at::Tensor& map, Places places) {
  const auto count = static_cast<std::int64_t>(places.size()), channels = map.size(1);
  const auto result = at::empty({count, channels}, map.options());
  const auto bytes = static_cast<std::size_t>(channels) * map.element_size();
  const auto* const from = static_cast<const std::byte*>(map.const_data_ptr());
  auto* const to = static_cast<std::byte*>(result.mutable_data_ptr());
  at::parallel_for(0, count, 256, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      if (places[i] >= 0)
        std::memcpy(to + i * bytes, from + static_cast<std::size_t>(places[i]) * bytes, bytes);
      else
        std::memset(to + i * bytes, 0, bytes);
  });
  return result.to(at::kFloat);
}

/// Adds rows (places, C) to the pixels of a float map, in their order.
void scatter_add(const at::Tensor& rows, Places places, const at::Tensor& map) {
  const auto channels = map.size(1);
  const auto* const from = rows.const_data_ptr<float>();
  auto* const to = map.mutable_data_ptr<float>();
  at::parallel_for(0, channels, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) continue;
      const auto* const row = from + static_cast<std::int64_t>(i) * channels;
      auto* const pixel = to + places[i] * channels;
      for (auto channel = begin; channel < end; ++channel) pixel[channel] += row[channel];
    }
  });
}

at::Tensor joined(const std::vector<at::Tensor>& rows) {
  return rows.size() == 1 ? rows[0] : at::cat(rows);
}

using Gradients = std::tuple<std::vector<at::Tensor>, at::Tensor, at::Tensor>;

Gradients on_cpu(at::TensorList gradients, at::TensorList rows, at::TensorList maps,
                 const at::Tensor& weight, std::int64_t stride, std::int64_t padding,
                 std::array<bool, 3> wanted) {
  const auto out = weight.size(0), in = weight.size(1), kernel = weight.size(2);
  const auto depth = kernel * kernel * in;
  std::vector<std::vector<std::int64_t>> places;  // pixels under the kernel, for each map
  std::vector<at::Tensor> slopes, inputs;
  for (std::size_t l = 0; l < maps.size(); ++l) {
    const Places pixels(rows[l].const_data_ptr<std::int64_t>(),
                        static_cast<std::size_t>(rows[l].numel()));
    places.push_back(under_kernel(pixels, gradients[l], maps[l], kernel, stride, padding));
    slopes.push_back(gather(gradients[l], pixels));
    if (wanted[1]) inputs.push_back(gather(maps[l], places[l]).view({rows[l].numel(), depth}));
  }
  const auto own = joined(slopes);  // (rows, K)
  Gradients result;
  auto& [dx, dw, db] = result;
  if (wanted[0]) {
    const auto factors = weight.to(at::kFloat).permute({0, 2, 3, 1}).reshape({out, depth});
    const auto terms = own.numel() > 0 ? times_transposed(own, factors.t()).view({-1, in}) : own;
    std::int64_t first = 0;
    for (std::size_t l = 0; l < maps.size(); ++l) {
      const auto count = std::ssize(places[l]);
      auto sums =
          at::empty(maps[l].sizes(), maps[l].options().dtype(at::kFloat), kChannelsLast).zero_();
      if (count > 0) scatter_add(terms.narrow(0, first, count), places[l], sums);
      dx.push_back(sums.to(maps[l].scalar_type()));
      first += count;
    }
  }
  if (wanted[1])
    dw = (own.numel() > 0 ? times_transposed(own.t(), joined(inputs).t())
                          : at::zeros({out, depth}, own.options()))
             .view({out, kernel, kernel, in})
             .permute({0, 3, 1, 2});
  if (wanted[2]) db = own.sum(0);
  return result;
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("sparse_convolution_backward", on_cpu); }

}  // namespace

Gradients sparse_backward(at::TensorList gradients, const std::vector<TouchedPixels>& touched,
                          at::TensorList maps, const at::Tensor& weight, std::int64_t stride,
                          std::int64_t padding, std::array<bool, 3> wanted) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("millrace::sparse_convolution_backward", "")
                             .typed<decltype(on_cpu)>();
  std::vector<at::Tensor> rows;
  for (const auto& of_map : touched) rows.push_back(rows_of(of_map));
  return op.call(gradients, rows, maps, weight, stride, padding, wanted);
}

}  // namespace millrace
