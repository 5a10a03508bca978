// The losses of YOLOX as sums: the caller decides what to divide by.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace::yolox {

/// Sum of 1 - IoU^2 of boxes and targets (F, 4), centre and sides.
at::Tensor iou_loss_sum(const at::Tensor& boxes, const at::Tensor& targets);

/// What the head should say of boxes (F, 4), centre and sides in pixels, at cells of `corners` (F,
/// 2) and `strides` (F): (F, 4), as Predictions::boxes.
at::Tensor encoded(const at::Tensor& boxes, const at::Tensor& corners, const at::Tensor& strides);

}  // namespace millrace::yolox
