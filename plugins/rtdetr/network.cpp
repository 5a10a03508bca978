#include "network.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>

#include <millrace/models/onnx/operations.h>

namespace millrace::rtdetr {
namespace {

constexpr std::int64_t kMaps = 3;

/// Creates a 1x1 convolution with norm for each map.
std::vector<ConvNorm> projections(const Scope& scope, const std::vector<std::int64_t>& in,
                                  std::int64_t out, const NormOptions& norm) {
  std::vector<ConvNorm> all;
  for (std::int64_t i = 0; i < std::ssize(in); ++i)
    all.emplace_back(scope / i / 0, scope / i / 1,
                     Conv2d::Shape{in[static_cast<std::size_t>(i)], out, 1}, norm);
  return all;
}

}  // namespace

Network::Network(const Scope& scope, const RtDetrOptions& options, std::int64_t classes)
    : classes_(classes),
      backbone_(scope / "backbone" / "model", options.backbone, options.norm_eps),
      encoder_in_(projections(
          scope / "encoder_input_proj", {backbone_.channels().begin(), backbone_.channels().end()},
          options.encoder.hidden_dim, {options.encoder.norm, options.norm_eps})),
      encoder_(scope / "encoder", options.encoder, options.norm_eps),
      denoising_classes_(options.denoising.num_queries > 0
                             ? (scope / "denoising_class_embed")
                                   .normal("weight", {classes + 1, options.decoder.hidden_dim}, 1)
                             : at::Tensor()),
      selection_(scope, options, classes),
      decoder_in_(projections(scope / "decoder_input_proj",
                              std::vector<std::int64_t>(kMaps, options.encoder.hidden_dim),
                              options.decoder.hidden_dim,
                              {options.encoder.norm, options.norm_eps})),
      decoder_(scope / "decoder", options, classes, kMaps) {
  if (!denoising_classes_.defined()) return;
  // The last row pads images with fewer objects and is not trained.
  scope.set_classes("denoising_class_embed", {1, Background::last});
  const at::NoGradGuard no_grad;
  denoising_classes_[classes].zero_();
}

template <class X>
std::vector<X> Network::encoded(const X& pixels, const NormMode& mode) const {
  auto maps = backbone_(pixels, mode);
  for (std::size_t i = 0; i < maps.size(); ++i) maps[i] = encoder_in_[i](maps[i], mode);
  return encoder_(std::move(maps), mode);
}

Network::Memory Network::encode(const at::Tensor& pixels, const NormMode& mode) const {
  auto maps = encoded(pixels, mode);
  Memory memory;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    memory.sizes.emplace_back(maps[i].size(2), maps[i].size(3));
    maps[i] = by_place(decoder_in_[i](maps[i], mode));
  }
  memory.places = at::cat(maps, 1);
  return memory;
}

Network::Output Network::decode(const Memory& memory, const DenoisingQueries* denoising,
                                const DenoisingShape& shape, bool last_only) const {
  Output output{selection_(memory.places, memory.sizes), {}};
  // The feature maps are trained through the decoder's sampling, and query selection by its own
  // losses.
  auto features = output.selection.features.detach(), boxes = output.selection.box_logits.detach();
  at::Tensor mask;
  if (denoising) {
    mask = denoising_mask(shape, features.size(1));
    const auto own = at::embedding(denoising_classes_, denoising->labels, /*padding_idx=*/classes_);
    features = at::cat({own.to(features.scalar_type()), features}, 1);
    boxes = at::cat({denoising->box_logits, boxes}, 1);
  }
  output.layers = decoder_(features, boxes, mask, memory.places, memory.sizes, last_only);
  return output;
}

PredictionNodes Network::operator()(const onnx::Value& pixels) const {
  auto maps = encoded(pixels, NormMode{});
  std::vector<onnx::Value> sizes;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    sizes.push_back(onnx::sides_of(maps[i], 2, 4));
    maps[i] = by_place(decoder_in_[i](maps[i]));
  }
  const auto memory = onnx::concat(maps, 1);
  const auto selection = selection_(memory, sizes);
  return decoder_(selection.features, selection.box_logits, memory, sizes);
}

}  // namespace millrace::rtdetr
