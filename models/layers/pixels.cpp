#include "millrace/models/layers/pixels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "millrace/models/detector/device_pixels.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/dispatched.h"

namespace millrace {
namespace {

/// The numbers of PixelOptions.
struct Scaling {
  std::array<float, 3> mean, deviation;
  bool bgr;
};

template <typename T>
void normalize_into(at::Tensor& result, const at::Tensor& pixels, at::IntArrayRef sizes,
                    const Scaling& scaling) {
  const auto n = pixels.size(0), height = result.size(2), width = result.size(3);
  const auto rows = pixels.size(1), columns = pixels.size(2);
  const auto* const in = pixels.const_data_ptr<std::uint8_t>();
  auto* const out = result.mutable_data_ptr<T>();
  at::parallel_for(0, n * height, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const auto image = line / height, y = line % height;
      const auto of_image = sizes.slice(static_cast<std::size_t>(2 * image), 2);
      const std::int64_t inside = y < of_image[0] ? of_image[1] : 0;
      const auto* from = inside == 0 ? nullptr : in + (image * rows + y) * columns * 3;
      auto* to = out + line * width * 3;
      for (std::int64_t x = 0; x < inside; ++x, from += 3, to += 3)
        for (std::size_t c = 0; c < 3; ++c)
          to[c] =
              static_cast<T>((static_cast<float>(from[scaling.bgr ? 2 - c : c]) - scaling.mean[c]) /
                             scaling.deviation[c]);
      std::fill(to, to + (width - inside) * 3, static_cast<T>(0.0F));
    }
  });
}

at::Tensor normalize_on_cpu(const at::Tensor& pixels, at::IntArrayRef sizes,
                            at::ArrayRef<double> mean, at::ArrayRef<double> deviation, bool bgr,
                            std::int64_t height, std::int64_t width, at::ScalarType type) {
  Scaling scaling{{}, {}, bgr};
  std::copy_n(mean.begin(), 3, scaling.mean.begin());
  std::copy_n(deviation.begin(), 3, scaling.deviation.begin());
  auto result = at::empty({pixels.size(0), 3, height, width}, pixels.options().dtype(type),
                          at::MemoryFormat::ChannelsLast);
  const auto bytes = pixels.contiguous();
  switch (type) {
    case at::kFloat:
      normalize_into<float>(result, bytes, sizes, scaling);
      break;
    case at::kBFloat16:
      normalize_into<at::BFloat16>(result, bytes, sizes, scaling);
      break;
    case at::kHalf:
      normalize_into<at::Half>(result, bytes, sizes, scaling);
      break;
    default:
      throw std::invalid_argument("normalize: the result type must be float, bfloat16 or half");
  }
  return result;
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) { library.impl("normalize", normalize_on_cpu); }

}  // namespace

void PixelOptions::describe(Options& o) {
  o.add("pixel_order", pixel_order, "order of the input channels").affects(WeightEffect::meaning);
  o.add("pixel_mean", pixel_mean, "mean to subtract from each channel, in pixel_order")
      .affects(WeightEffect::meaning);
  o.add("pixel_std", pixel_std, "standard deviation to divide each channel by, in pixel_order",
        {.min = 1e-6})
      .affects(WeightEffect::meaning);
}

void PixelOptions::check(const Config& table) const {
  require(table, "pixel_mean", pixel_mean.size() == 3, "needs three numbers, one per channel");
  require(table, "pixel_std", pixel_std.size() == 3, "needs three numbers, one per channel");
}

at::Tensor normalize(const Batch& batch, const PixelOptions& options, at::Device device,
                     cv::Size padded) {
  std::vector<std::int64_t> sizes;
  for (const auto& image : batch.images) sizes.insert(sizes.end(), {image.height, image.width});
  const auto type = compute_type(at::empty({0}, at::TensorOptions(at::kFloat).device(device)));
  static const auto op = dispatched<decltype(normalize_on_cpu)>("millrace::normalize");
  return op.call(pixels_on(batch, device), sizes, options.pixel_mean, options.pixel_std,
                 options.pixel_order == ChannelOrder::bgr, std::max(padded.height, batch.height),
                 std::max(padded.width, batch.width), type);
}

onnx::Value normalize(const onnx::Value& pixels, const onnx::Value& sizes,
                      const onnx::Value& padded, const PixelOptions& options) {
  auto& g = *pixels.graph;
  const auto place = g.in("normalize");
  auto x = onnx::cast(onnx::transpose(pixels, {0, 3, 1, 2}), onnx::Type::f32);
  if (options.pixel_order == ChannelOrder::bgr) x = onnx::gather(x, g.ints({2, 1, 0}), 1);
  const auto by_channel = [&](const std::vector<double>& values, const char* name) {
    return g.constant(at::tensor(values, at::kFloat).view({3, 1, 1}), name);
  };
  x = (x - by_channel(options.pixel_mean, "pixel_mean")) /
      by_channel(options.pixel_std, "pixel_std");
  const auto height = onnx::unsqueeze(onnx::slice(sizes, 1, 0, 1), {1, 2}),  // (N, 1, 1, 1)
      width = onnx::unsqueeze(onnx::slice(sizes, 1, 1, 2), {1, 2});
  const auto inside = (onnx::unsqueeze(onnx::range(onnx::side_of(pixels, 1)), {1}) < height) &&
                      (onnx::range(onnx::side_of(pixels, 2)) < width);
  x = onnx::where(inside, x, 0);
  const auto more = padded - onnx::sides_of(pixels, 1, 3);
  return g.add("Pad", {x, onnx::concat({g.ints({0, 0, 0, 0, 0, 0}), more}, 0)});
}

}  // namespace millrace
