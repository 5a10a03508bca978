#include "box_forms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include <millrace/models/onnx/operations.h>

namespace millrace::rtdetr {
namespace {

constexpr double kLeastShare = 1e-5;

at::Tensor first(const at::Tensor& boxes) { return boxes.narrow(-1, 0, 2); }
at::Tensor last(const at::Tensor& boxes) { return boxes.narrow(-1, 2, 2); }
/// Returns the product of the two sides (..., 2).
at::Tensor area(const at::Tensor& sides) { return sides.select(-1, 0) * sides.select(-1, 1); }

}  // namespace

at::Tensor inverse_sigmoid(const at::Tensor& shares) {
  const auto x = shares.clamp(0, 1);
  return (x.clamp_min(kLeastShare) / (1 - x).clamp_min(kLeastShare)).log();
}

onnx::Value inverse_sigmoid(const onnx::Value& shares) {
  const auto x = onnx::minimum(onnx::maximum(shares, 0), 1);
  const auto rest = x.graph->scalar(1, x.type) - x;
  return onnx::apply("Log", onnx::maximum(x, kLeastShare) / onnx::maximum(rest, kLeastShare));
}

Overlap overlap_of(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kLeast = 1e-20;  // smallest divisor, for two boxes without area
  const auto common =
      area((at::minimum(last(a), last(b)) - at::maximum(first(a), first(b))).clamp_min(0));
  const auto both = area(last(a) - first(a)) + area(last(b) - first(b)) - common;
  const auto hull = area(at::maximum(last(a), last(b)) - at::minimum(first(a), first(b)));
  const auto iou = common / both.clamp_min(kLeast);
  return {iou, iou - (hull - both) / hull.clamp_min(kLeast)};
}

}  // namespace millrace::rtdetr
