#include "models/layers/boxes.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "models/ops/simd.h"

namespace millrace {
namespace {

/// Coordinate planes of (N, 4) boxes.
struct Planes {
  explicit Planes(const at::Tensor& boxes)
      : memory(boxes.t().contiguous()),
        x1(memory.const_data_ptr<float>()),
        y1(x1 + boxes.size(0)),
        x2(y1 + boxes.size(0)),
        y2(x2 + boxes.size(0)) {}

  at::Tensor memory;  // (4, N)
  const float *x1, *y1, *x2, *y2;
};

/// The IoU of box `row` of `a` with boxes begin .. end of `b`, in torchvision's order of operations.
MILLRACE_SIMD void iou_row(const Planes& a, std::int64_t row, const Planes& b, std::int64_t begin,
                           std::int64_t end, float offset, float* result) {
  const float x1 = a.x1[row], y1 = a.y1[row], x2 = a.x2[row], y2 = a.y2[row];
  const float area = (x2 - x1 + offset) * (y2 - y1 + offset);
  for (auto i = begin; i < end; ++i) {
    const float bx1 = b.x1[i], by1 = b.y1[i], bx2 = b.x2[i], by2 = b.y2[i];
    const float left = bx1 > x1 ? bx1 : x1, top = by1 > y1 ? by1 : y1;
    const float right = bx2 < x2 ? bx2 : x2, bottom = by2 < y2 ? by2 : y2;
    const float width = right - left + offset, height = bottom - top + offset;
    const float common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
    const float ratio = common / (area + (bx2 - bx1 + offset) * (by2 - by1 + offset) - common);
    result[i] = ratio > 0 ? ratio : 0;  // 0 / 0, too
  }
}

/// Centres and sides, each of the shape of one coordinate.
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
  const Planes left(a), right(b);
  const auto rows = a.size(0), columns = b.size(0);
  auto result = at::empty({rows, columns}, a.options());
  auto* out = result.mutable_data_ptr<float>();
  constexpr std::int64_t kColumns = 1024;
  at::parallel_for(0, columns, kColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < rows; ++row)
      iou_row(left, row, right, begin, end, static_cast<float>(offset), out + row * columns);
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

}  // namespace millrace
