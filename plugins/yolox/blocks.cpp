#include "blocks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/max_pool2d.h>

#include <millrace/models/onnx/operations.h>

namespace millrace::yolox {
namespace {

ConvNorm layer(const Scope& scope, const Conv2d::Shape& shape, const BlockOptions& options) {
  return {scope / "conv", scope / "bn", shape, options.norm, 1, {Init::Kind::torch}};
}

}  // namespace

at::Tensor max_pool5(const at::Tensor& x) { return at::max_pool2d(x, {5, 5}, {1, 1}, {2, 2}); }
onnx::Value max_pool5(const onnx::Value& x) {
  return x.graph->add("MaxPool", {x},
                      {{"kernel_shape", onnx::Ints{5, 5}}, {"pads", onnx::Ints{2, 2, 2, 2}}});
}

at::Tensor space_to_depth(const at::Tensor& x) {
  const auto n = x.size(0), c = x.size(1), h = x.size(2) / 2, w = x.size(3) / 2;
  return x.view({n, c, h, 2, w, 2})
      .permute({0, 5, 3, 1, 2, 4})  // (N, right, below, C, H / 2, W / 2)
      .reshape({n, 4 * c, h, w})
      .contiguous(at::MemoryFormat::ChannelsLast);
}
onnx::Value space_to_depth(const onnx::Value& x) {
  auto& g = *x.graph;
  const auto at_parity = [&](std::int64_t below, std::int64_t right) {
    return g.add("Slice", {x, g.ints({below, right}), g.ints({INT64_MAX, INT64_MAX}),
                           g.ints({2, 3}), g.ints({2, 2})});
  };
  return concat_channels({at_parity(0, 0), at_parity(1, 0), at_parity(0, 1), at_parity(1, 1)});
}

Conv Conv::plain(const Scope& scope, const Shape& shape, const BlockOptions& options) {
  return {scope, shape, {.depthwise = false, .norm = options.norm}};
}

Conv::Conv(const Scope& scope, const Shape& shape, const BlockOptions& options) {
  const auto& [in, out, kernel, stride] = shape;
  if (!options.depthwise) {
    convs_.push_back(layer(scope, {in, out, kernel, stride}, options));
    return;
  }
  convs_.push_back(
      layer(scope / "dconv", {in, in, kernel, stride, /*bias=*/false, /*groups=*/in}, options));
  convs_.push_back(layer(scope / "pconv", {in, out, 1}, options));
}

Bottleneck::Bottleneck(const Scope& scope, std::int64_t channels, bool shortcut,
                       const BlockOptions& options)
    : first_(Conv::plain(scope / "conv1", {channels, channels, 1}, options)),
      second_(scope / "conv2", {channels, channels, 3}, options),
      shortcut_(shortcut) {}

CspLayer::CspLayer(const Scope& scope, const Shape& shape, const BlockOptions& options)
    : first_(Conv::plain(scope / "conv1", {shape.in, shape.out / 2, 1}, options)),
      second_(Conv::plain(scope / "conv2", {shape.in, shape.out / 2, 1}, options)),
      last_(Conv::plain(scope / "conv3", {shape.out / 2 * 2, shape.out, 1}, options)) {
  for (std::int64_t i = 0; i < shape.count; ++i)
    bottlenecks_.emplace_back(scope / "m" / i, shape.out / 2, shape.shortcut, options);
}

SppBottleneck::SppBottleneck(const Scope& scope, std::int64_t channels, const BlockOptions& options)
    : first_(Conv::plain(scope / "conv1", {channels, channels / 2, 1}, options)),
      last_(Conv::plain(scope / "conv2", {channels / 2 * 4, channels, 1}, options)) {}

}  // namespace millrace::yolox
