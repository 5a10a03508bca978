#include "millrace/models/backbones/pyramid.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>

#include "millrace/trainer/detector/device_pixels.h"

namespace millrace {
namespace {

at::Tensor normalize_here(const Batch& batch, const PyramidOptions& options, cv::Size padded) {
  const bool bgr = options.pixel_order == "bgr";
  std::array<float, 3> mean, deviation;
  std::copy_n(options.pixel_mean.begin(), 3, mean.begin());
  std::copy_n(options.pixel_std.begin(), 3, deviation.begin());
  const auto n = static_cast<std::int64_t>(batch.size());
  const std::int64_t height = padded.height, width = padded.width;
  auto result =
      at::empty({n, 3, height, width},
                at::TensorOptions(at::kFloat).memory_format(at::MemoryFormat::ChannelsLast));
  float* const out = result.data_ptr<float>();

  at::parallel_for(0, n * height, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const auto place = line / height, y = line % height;
      const auto& image = batch.images[static_cast<std::size_t>(place)];
      const std::int64_t inside = y < image.height ? image.width : 0;
      const std::uint8_t* from =
          inside == 0 ? nullptr : batch.pixels.get() + (place * batch.height + y) * batch.width * 3;
      float* to = out + line * width * 3;
      for (std::int64_t x = 0; x < inside; ++x, from += 3, to += 3)
        for (std::size_t c = 0; c < 3; ++c)
          to[c] = (static_cast<float>(from[bgr ? 2 - c : c]) - mean[c]) / deviation[c];
      std::fill(to, to + (width - inside) * 3, 0.0F);
    }
  });
  return result;
}

/// The same numbers, by operators of the device.
at::Tensor normalize_there(const Batch& batch, const PyramidOptions& options, at::Device device,
                           cv::Size padded) {
  const auto there = [&](const std::vector<double>& values) {
    return at::tensor(values, at::kFloat).to(device);
  };
  auto pixels = pixels_on(batch, device);
  if (options.pixel_order == "bgr") pixels = pixels.flip(3);
  const auto result =
      at::empty({static_cast<std::int64_t>(batch.size()), padded.height, padded.width, 3},
                at::TensorOptions(at::kFloat).device(device));
  const auto slots = result.narrow(1, 0, batch.height).narrow(2, 0, batch.width);
  slots.copy_(pixels).sub_(there(options.pixel_mean)).div_(there(options.pixel_std));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto image = result[static_cast<std::int64_t>(i)];
    const std::int64_t height = batch.images[i].height, width = batch.images[i].width;
    image.narrow(0, height, padded.height - height).zero_();
    image.narrow(1, width, padded.width - width).zero_();
  }
  return result.permute({0, 3, 1, 2});  // channels last in memory already
}

}  // namespace

at::Tensor normalize(const Batch& batch, const PyramidOptions& options, at::Device device,
                     cv::Size padded) {
  padded = {std::max(padded.width, batch.width), std::max(padded.height, batch.height)};
  return device.is_cpu() ? normalize_here(batch, options, padded)
                         : normalize_there(batch, options, device, padded);
}

Pyramid::Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top)
    : options_(options),
      first_(top == FpnTop::pool ? 0 : 1),
      device_(scope.device()),
      body_(scope / "body", options),
      fpn_(scope / "fpn", at::IntArrayRef(body_.channels()).slice(first_), options.channels,
           {options.fpn_norm, options.norm_epsilon}, top) {}

std::vector<at::Tensor> Pyramid::operator()(const Batch& batch, const NormPass& pass,
                                            cv::Size padded) const {
  const auto c = body_(normalize(batch, options_, device_, padded), pass);
  return fpn_(at::TensorList(c).slice(first_), pass);
}

}  // namespace millrace
