#include "millrace/models/ops/boxes.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/iou.h"

namespace millrace {
namespace {

/// Centres and sides of boxes; each tensor has the shape of one coordinate.
struct CentreForm {
  at::Tensor x, y, width, height;

  CentreForm(const at::Tensor& boxes, double offset) {
    const auto sides = boxes.unbind(-1);
    width = sides[2] - sides[0] + offset;
    height = sides[3] - sides[1] + offset;
    x = sides[0] + 0.5 * width;
    y = sides[1] + 0.5 * height;
  }
};

}  // namespace

at::Tensor box_iou(const at::Tensor& a, const at::Tensor& b, double offset) {
  const BoxPlanes left(a), right(b);
  const auto rows = a.size(0), columns = b.size(0);
  auto result = at::empty({rows, columns}, a.options());
  auto* out = result.mutable_data_ptr<float>();
  constexpr std::int64_t kColumns = 1024;
  at::parallel_for(0, columns, kColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < rows; ++row)
      iou_row(left, row, right, begin, end, static_cast<float>(offset),
              out + row * columns + begin);
  });
  return result;
}

at::Tensor clip_boxes(const at::Tensor& boxes, double height, double width) {
  return at::minimum(boxes.clamp_min(0),
                     at::tensor({width, height, width, height}, boxes.options()));
}

at::Tensor BoxCoder::encode(const at::Tensor& proposals, const at::Tensor& boxes) const {
  const CentreForm from(proposals, offset), to(boxes, offset);
  return at::stack(
      {weights[0] * (to.x - from.x) / from.width, weights[1] * (to.y - from.y) / from.height,
       weights[2] * (to.width / from.width).log(), weights[3] * (to.height / from.height).log()},
      1);
}

at::Tensor BoxCoder::decode(const at::Tensor& proposals, const at::Tensor& deltas) const {
  const CentreForm from(proposals.unsqueeze(1), offset);                              // (N, 1) each
  const auto d = deltas.reshape({deltas.size(0), deltas.size(1) / 4, 4}).unbind(-1);  // (N, K) each
  const auto half_width = 0.5 * (d[2] / weights[2]).clamp_max(max_log_scale).exp() * from.width;
  const auto half_height = 0.5 * (d[3] / weights[3]).clamp_max(max_log_scale).exp() * from.height;
  const auto x = d[0] / weights[0] * from.width + from.x;
  const auto y = d[1] / weights[1] * from.height + from.y;
  return at::stack(
             {x - half_width, y - half_height, x + half_width - offset, y + half_height - offset},
             2)
      .flatten(1);
}

onnx::Value clip_boxes(const onnx::Value& boxes, const onnx::Value& limits) {
  return onnx::minimum(onnx::maximum(boxes, 0), limits);
}

onnx::Value limits_of(const onnx::Value& sizes) {
  auto& g = *sizes.graph;
  return onnx::cast(onnx::gather(sizes, g.ints({1, 0, 1, 0}), 1), onnx::Type::f32);
}

onnx::Value sides_of_boxes(const onnx::Value& boxes) {
  return onnx::slice(boxes, -1, 2, 4) - onnx::slice(boxes, -1, 0, 2);
}

onnx::Value BoxCoder::decode(const onnx::Value& proposals, const onnx::Value& deltas) const {
  auto& g = *proposals.graph;
  const auto in = g.in("decode");
  const auto pair = [&](double a, double b, const char* name) {
    return g.constant(at::tensor({a, b}, at::kFloat), name);
  };
  auto sides = sides_of_boxes(proposals);
  if (offset != 0) sides = sides + offset;
  const auto centre = onnx::slice(proposals, -1, 0, 2) + sides * 0.5;
  const auto shift = onnx::slice(deltas, -1, 0, 2) / pair(weights[0], weights[1], "xy_weights"),
             growth = onnx::slice(deltas, -1, 2, 4) / pair(weights[2], weights[3], "wh_weights");
  const auto half = onnx::apply("Exp", onnx::minimum(growth, max_log_scale)) * 0.5 * sides;
  const auto place = shift * sides + centre;
  auto last = place + half;
  if (offset != 0) last = last - offset;
  return onnx::concat({place - half, last}, -1);
}

}  // namespace millrace
