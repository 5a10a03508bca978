// The tiny networks of transformers_rtdetr.py, with the same weights, images, objects and noise.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/plugins/rtdetr/denoising.h"
#include "millrace/plugins/rtdetr/options.h"

namespace millrace::rtdetr::testing {

inline constexpr std::int64_t kHeight = 64, kWidth = 96, kClasses = 3;

inline std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

/// Returns values in [0, 1), hashed from the name and the index.
inline at::Tensor made_up(std::string_view name, at::IntArrayRef shape) {
  auto values = at::empty(shape, at::kFloat);
  auto* const value = values.mutable_data_ptr<float>();
  const auto start = crc32(name);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    auto x = static_cast<std::uint32_t>(i) * 2654435761U + start;
    for (int round = 0; round < 2; ++round) {
      x ^= x >> 16;
      x *= 0x45D9F3BU;
    }
    x ^= x >> 16;
    value[i] = static_cast<float>(x / 4294967296.0);
  }
  return values;
}

/// Sets weights with the magnitudes of a network early in training.
inline void set_made_up_weights(const millrace::Parameters& parameters) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, value, kind, classes] : parameters) {
    if (name.ends_with("n_points_scale")) continue;
    const auto u = 2 * made_up(name, value.sizes()) - 1;
    if (name.ends_with("running_var"))
      value.copy_(1 + 0.5 * u);
    else if (value.dim() > 1)
      value.copy_(u * std::sqrt(3.0 / static_cast<double>(value.numel() / std::max<std::int64_t>(
                                                                              1, value.size(0)))));
    else if (name.ends_with(".weight"))
      value.copy_(1 + 0.3 * u);
    else
      value.copy_(name.find("sampling_offsets") != std::string::npos ? u : 0.2 * u);
  }
}

inline RtDetrOptions tiny_options(const std::string& version) {
  RtDetrOptions options;
  options.backbone = {millrace::BackboneType::resnet18, 16, millrace::Norm::bn, 0};
  options.encoder = {16, 32, 2, 0.5, millrace::Norm::bn};
  options.decoder = {16, 32, 2, 2, 4, 0.5, 10};
  options.denoising.num_queries = 8;
  options.test.detections_per_img = 10;
  if (version == "v2") {
    options.version = Version::v2;
    options.backbone = {millrace::BackboneType::resnet50, 16, millrace::Norm::frozen_bn, 0};
    options.encoder.expansion = 1;
    options.decoder.offset_scale = 0.7;
  }
  return options;
}

inline std::vector<Target> tiny_targets() {
  return {
      {at::tensor({0, 2, 1}, at::kLong),
       at::tensor({0.3, 0.4, 0.2, 0.5, 0.7, 0.5, 0.3, 0.3, 0.5, 0.6, 0.9, 0.7}, at::kFloat)
           .view({3, 4})},
      {at::tensor({1}, at::kLong), at::tensor({0.45, 0.35, 0.6, 0.4}, at::kFloat).view({1, 4})}};
}

/// Returns two images that were 2 times as high and 3 times as wide before resizing.
inline millrace::Batch tiny_batch() {
  millrace::Batch batch{.height = kHeight, .width = kWidth};
  for (int i = 0; i < 2; ++i) {
    batch.images.push_back({.original_width = 3 * kWidth,
                            .original_height = 2 * kHeight,
                            .width = kWidth,
                            .height = kHeight,
                            .scale_x = 1.0F / 3,
                            .scale_y = 0.5F});
    batch.objects.emplace_back();
  }
  const auto pixels = (made_up("pixels", {2, 3, kHeight, kWidth}) * 256)
                          .floor()
                          .to(at::kByte)
                          .permute({0, 2, 3, 1})
                          .contiguous();
  batch.pixels.reset(new std::uint8_t[batch.bytes()]);
  std::copy_n(pixels.const_data_ptr<std::uint8_t>(), batch.bytes(), batch.pixels.get());
  return batch;
}

inline DenoisingNoise tiny_noise(const DenoisingShape& shape) {
  const auto count = shape.queries();
  const auto sign = (made_up("noise2", {2, count, 4}) * 2).floor() * 2 - 1;
  auto part = made_up("noise3", {2, count, 4});
  for (std::int64_t block = 1; block < 2 * shape.groups; block += 2)
    part.narrow(1, block * shape.most, shape.most) += 1;
  return {made_up("noise0", {2, count}) < 0.25,
          (made_up("noise1", {2, count}) * kClasses).floor().to(at::kLong), sign * part};
}

}  // namespace millrace::rtdetr::testing
