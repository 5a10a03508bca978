#include "resnet_vd.h"

#include <string>

#include <millrace/models/backbones/maps.h>

namespace millrace::rtdetr {

ResNetVd::ResNetVd(const Scope& scope, const BackboneOptions& options, double norm_eps) {
  const NormOptions norm{options.norm, norm_eps};
  const auto unit = [&](const Scope& place, const Conv2d::Shape& shape) {
    return ConvNorm(place / "convolution", place / "normalization", shape, norm);
  };
  const auto stem = scope / "embedder" / "embedder";
  const auto half = options.width / 2;
  stem_ = {unit(stem / 0, {3, half, 3, 2}), unit(stem / 1, {half, half, 3}),
           unit(stem / 2, {half, options.width, 3})};
  const auto& [blocks, bottleneck] = layout_of(options.type);
  auto in = options.width;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const auto middle = options.width << stage;
    const auto out = bottleneck ? middle * 4 : middle;
    for (std::int64_t index = 0; index < blocks[stage]; ++index) {
      const std::int64_t stride = stage > 0 && index == 0 ? 2 : 1;
      const auto place =
          scope / "encoder" / "stages" / static_cast<std::int64_t>(stage) / "layers" / index;
      const auto layer = place / "layer";
      ResidualBlock block;
      if (bottleneck)
        block.convs = {unit(layer / 0, {in, middle, 1}),
                       unit(layer / 1, {middle, middle, 3, stride}),
                       unit(layer / 2, {middle, out, 1})};
      else
        block.convs = {unit(layer / 0, {in, out, 3, stride}), unit(layer / 1, {out, out, 3})};
      block.projects = index == 0;  // also in basic blocks of unchanged width and stride
      block.pools = stride > 1;     // the pooling is child 0 of the shortcut
      if (block.projects) {
        const auto shortcut = place / "shortcut";
        block.shortcut = unit(block.pools ? shortcut / 1 : shortcut, {in, out, 1});
      }
      stages_[stage].push_back(std::move(block));
      in = out;
    }
    if (stage > 0) channels_[stage - 1] = out;
  }
  if (options.freeze_at >= 1) scope.freeze("embedder.");
  for (std::int64_t stage = 2; stage <= options.freeze_at; ++stage)
    scope.freeze("encoder.stages." + std::to_string(stage - 2) + ".");
}

template <class X>
std::vector<X> ResNetVd::operator()(const X& x, const NormMode& mode) const {
  auto y = x;
  for (const auto& conv : stem_) y = conv(y, mode, {.activation = Activation::relu});
  y = max_pooled(y, 3);
  std::vector<X> maps;
  for (const auto& stage : stages_) {
    y = through(stage, y, mode);
    maps.push_back(y);
  }
  return {maps.begin() + 1, maps.end()};
}

template std::vector<at::Tensor> ResNetVd::operator()(const at::Tensor&, const NormMode&) const;
template std::vector<onnx::Value> ResNetVd::operator()(const onnx::Value&, const NormMode&) const;

}  // namespace millrace::rtdetr
