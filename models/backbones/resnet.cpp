#include "millrace/models/backbones/resnet.h"

#include <map>
#include <string>

#include "millrace/models/backbones/maps.h"

namespace millrace {

const ResNetLayout& layout_of(BackboneType type) {
  static const std::map<BackboneType, ResNetLayout> layouts = {
      {BackboneType::resnet18, {{2, 2, 2, 2}, false}},
      {BackboneType::resnet34, {{3, 4, 6, 3}, false}},
      {BackboneType::resnet50, {{3, 4, 6, 3}, true}},
      {BackboneType::resnet101, {{3, 4, 23, 3}, true}}};
  return layouts.at(type);
}

ResidualBlock::ResidualBlock(const Scope& scope, const Shape& shape, const NormOptions& norm,
                             double last_scale)
    : projects(shape.stride != 1 || shape.in != shape.out),
      pools(shape.pools && shape.stride != 1) {
  const auto conv = [&](int number, const Conv2d::Shape& own, double scale = 1) {
    const auto name = std::to_string(number);
    convs.emplace_back(scope / ("conv" + name), scope / ("bn" + name), own, norm, scale);
  };
  const auto& [in, middle, out, stride, groups, bottleneck, early, pool] = shape;
  if (bottleneck) {
    conv(1, {in, middle, 1, early ? stride : 1});
    conv(
        2,
        {.in = middle, .out = middle, .kernel = 3, .stride = early ? 1 : stride, .groups = groups});
    conv(3, {middle, out, 1}, last_scale);
  } else {
    conv(1, {in, out, 3, stride});
    conv(2, {out, out, 3}, last_scale);
  }
  if (!projects) return;
  const auto place = scope / "downsample";
  const std::int64_t first = pool ? 1 : 0;  // the pooling is child 0
  shortcut = ConvNorm(place / first, place / (first + 1), {in, out, 1, pools ? 1 : stride}, norm);
}

ResNet::ResNet(const Scope& scope, const PyramidOptions& options)
    : count_(options.has_pyramid() ? 4 : 3) {
  const NormOptions norm{options.norm, options.norm_eps};
  const auto conv1 = scope / "conv1", bn1 = scope / "bn1";
  if (options.deep_stem) {
    const auto half = options.width / 2;
    stem_ = {ConvNorm(conv1 / 0, conv1 / 1, {3, half, 3, 2}, norm),
             ConvNorm(conv1 / 3, conv1 / 4, {half, half, 3}, norm),
             ConvNorm(conv1 / 6, bn1, {half, options.width, 3}, norm)};
  } else {
    stem_ = {ConvNorm(conv1, bn1, {3, options.width, 7, 2}, norm)};
  }
  const auto& [blocks, bottleneck] = layout_of(options.backbone);
  const double last_scale = options.zero_init_residual ? 0 : 1;
  auto in = options.width;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const auto planes = options.width << stage;
    const auto out = bottleneck ? planes * 4 : planes;
    const auto middle = planes * options.width_per_group / 64 * options.groups;
    const auto layer = scope / ("layer" + std::to_string(stage + 1));
    for (std::int64_t index = 0; index < blocks[stage]; ++index) {
      const std::int64_t stride = stage > 0 && index == 0 ? 2 : 1;
      stages_[stage].emplace_back(layer / index,
                                  ResidualBlock::Shape{.in = in,
                                                       .middle = middle,
                                                       .out = out,
                                                       .stride = stride,
                                                       .groups = options.groups,
                                                       .bottleneck = bottleneck,
                                                       .stride_early = options.stride_in_1x1,
                                                       .pools = options.avg_down},
                                  norm, last_scale);
      in = out;
    }
    channels_[stage] = out;
  }
  if (options.freeze_at >= 1) scope.freeze("conv1."), scope.freeze("bn1.");
  for (std::int64_t stage = 2; stage <= options.freeze_at; ++stage)
    scope.freeze("layer" + std::to_string(stage - 1) + ".");
}

template <class X>
X ResidualBlock::operator()(const X& x, const NormMode& mode) const {
  auto y = x;
  for (std::size_t i = 0; i + 1 < convs.size(); ++i)
    y = convs[i](y, mode, {.activation = Activation::relu});
  const auto& last = convs.back();
  if (!projects) return last(y, mode, {x, Activation::relu});
  return last(y, mode, {shortcut(pools ? average_pool(x) : x, mode), Activation::relu});
}

template <class X>
std::vector<X> ResNet::operator()(const X& x, const NormMode& mode) const {
  auto y = x;
  for (const auto& conv : stem_) y = conv(y, mode, {.activation = Activation::relu});
  y = max_pooled(y, 3);
  std::vector<X> outputs;
  for (std::size_t stage = 0; stage < count_; ++stage) {
    y = through(stages_[stage], y, mode);
    outputs.push_back(y);
  }
  return outputs;
}

template at::Tensor ResidualBlock::operator()(const at::Tensor&, const NormMode&) const;
template onnx::Value ResidualBlock::operator()(const onnx::Value&, const NormMode&) const;
template std::vector<at::Tensor> ResNet::operator()(const at::Tensor&, const NormMode&) const;
template std::vector<onnx::Value> ResNet::operator()(const onnx::Value&, const NormMode&) const;

}  // namespace millrace
