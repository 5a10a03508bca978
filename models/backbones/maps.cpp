#include "millrace/models/backbones/maps.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/upsample_nearest2d.h>

#include "millrace/models/onnx/operations.h"

namespace millrace {

at::Tensor apply_relu(const at::Tensor& x) { return at::relu(x); }
onnx::Value apply_relu(const onnx::Value& x) { return onnx::apply("Relu", x); }

at::Tensor max_pooled(const at::Tensor& x, std::int64_t kernel) {
  return at::max_pool2d(x, kernel, 2, kernel / 2);
}
onnx::Value max_pooled(const onnx::Value& x, std::int64_t kernel) {
  onnx::Attributes how{{"kernel_shape", onnx::Ints{kernel, kernel}}, {"strides", onnx::Ints{2, 2}}};
  if (kernel > 1) how.emplace_back("pads", onnx::Ints(4, kernel / 2));
  return x.graph->add("MaxPool", {x}, how);
}

at::Tensor average_pool(const at::Tensor& x) {
  return at::avg_pool2d(x, 2, 2, 0, /*ceil_mode=*/true, /*count_include_pad=*/false);
}
onnx::Value average_pool(const onnx::Value& x) {
  return x.graph->add("AveragePool", {x},
                      {{"kernel_shape", onnx::Ints{2, 2}},
                       {"strides", onnx::Ints{2, 2}},
                       {"ceil_mode", std::int64_t{1}}});
}

at::Tensor concat_channels(const std::vector<at::Tensor>& maps) { return at::cat(maps, 1); }
onnx::Value concat_channels(const std::vector<onnx::Value>& maps) { return onnx::concat(maps, 1); }

at::Tensor upsample_like(const at::Tensor& x, const at::Tensor& like) {
  return at::upsample_nearest2d(x, {like.size(2), like.size(3)});
}
onnx::Value upsample_like(const onnx::Value& x, const onnx::Value& like) {
  return onnx::upsample_nearest(x, onnx::sides_of(like, 2, 4));
}

}  // namespace millrace
