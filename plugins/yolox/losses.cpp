#include "losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

namespace millrace::yolox {

at::Tensor iou_loss_sum(const at::Tensor& boxes, const at::Tensor& targets) {
  const auto centre = [](const at::Tensor& of) { return of.narrow(1, 0, 2); };
  const auto sides = [](const at::Tensor& of) { return of.narrow(1, 2, 2); };
  const auto area = [&](const at::Tensor& of) { return sides(of).prod(1); };
  const auto low =
      at::maximum(centre(boxes) - sides(boxes) / 2, centre(targets) - sides(targets) / 2);
  const auto high =
      at::minimum(centre(boxes) + sides(boxes) / 2, centre(targets) + sides(targets) / 2);
  const auto meet = (low < high).all(1).to(boxes.scalar_type());
  const auto common = (high - low).prod(1) * meet;
  const auto iou = common / (area(boxes) + area(targets) - common + 1e-16);
  return (1 - iou.square()).sum();
}

at::Tensor encoded(const at::Tensor& boxes, const at::Tensor& corners, const at::Tensor& strides) {
  const auto in_strides = boxes / strides.unsqueeze(1);
  return at::cat({in_strides.narrow(1, 0, 2) - corners, (in_strides.narrow(1, 2, 2) + 1e-8).log()},
                 1);
}

}  // namespace millrace::yolox
