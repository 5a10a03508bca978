#include "millrace/models/maskrcnn/mask_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "millrace/models/layers/losses.h"
#include "millrace/models/layers/relu.h"
#include "millrace/models/onnx/operations.h"
#include "millrace/models/ops/upload.h"

namespace millrace {
namespace {

/// Adds accuracies of the pixels of the regions' own masks (F, M, M), thresholded at probability
/// 1/2.
void add_metrics(const at::Tensor& logits, const at::Tensor& targets, Metrics& metrics) {
  const auto object = targets > 0.5, right = (logits > 0) == object;
  const auto pixels = object.sum();
  const auto all = at::full_like(pixels, object.numel());
  metrics.add("mask/accuracy", right.sum(), all);
  metrics.add("mask/fg_accuracy", (right & object).sum(), pixels);
  metrics.add("mask/fg", pixels, all);
}

/// Returns the indices of `objects` (F) that have a shape, (F') int64; nullopt = all. Synchronizes
/// with the device if an object of the batch has none.
std::optional<at::Tensor> with_shape(const TruthPack& pack, const at::Tensor& objects) {
  const auto has_none = [](const auto* shape) {
    return std::holds_alternative<std::monostate>(*shape);
  };
  if (std::ranges::none_of(pack.segmentations, has_none)) return std::nullopt;
  const auto here = objects.cpu();
  const auto* object = here.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < here.numel(); ++row)
    if (!has_none(pack.segmentations[static_cast<std::size_t>(object[row])])) rows.push_back(row);
  return uploaded({at::tensor(rows, at::kLong)}, objects.device())[0];
}

/// A 1x1 convolution with separate weights for each image: x (F, C, H, W), weights (F, Q, C) -> (F,
/// Q, H W). The gradient of x is channels last, as x is.
class PixelProducts : public torch::autograd::Function<PixelProducts> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weights) {
    context->save_for_backward({x, weights});
    return at::bmm(weights, as_pixels(x).transpose(1, 2));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weights = saved[1], &gradient = gradients[0];
    // With autograd, the view would keep its base alive, and the ReLU's gradient could not be in
    // place.
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto dx = at::bmm(gradient.transpose(1, 2), weights)
                        .view({x.size(0), x.size(2), x.size(3), x.size(1)})
                        .permute({0, 3, 1, 2});
    return {dx, at::bmm(gradient, as_pixels(x))};
  }

 private:
  /// Returns (F, H W, C).
  static at::Tensor as_pixels(const at::Tensor& x) { return x.permute({0, 2, 3, 1}).flatten(1, 2); }
};

}  // namespace

void MaskHeadOptions::describe(Options& o) {
  o.add("mask.pooler_resolution", pooler_resolution,
        "cells per side of the mask head's regions; masks have twice as many",
        {.min = 1, .max = 128})
      .affects(WeightEffect::meaning);
  o.add("mask.conv_dim", conv_dim, "channels of the mask head", {.min = 1, .max = 4096})
      .affects(WeightEffect::tensors);
  o.add("mask.num_convs", num_convs, "number of 3x3 convolutions in the mask head",
        {.min = 0, .max = 16})
      .affects(WeightEffect::tensors);
  o.add("mask.init_std", init_std,
        "standard deviation of the mask predictor's initial weights; 0 = He's, sqrt(2 / classes)",
        {.min = 0});
  o.add("mask.target", target,
        "mask targets: binary (rasterised in the region), or soft (ROIAlign of the mask)");
  o.add("mask.paste", paste,
        "pasting of masks: grid (continuous box, detectron2), or padded (integer box, torchvision)")
      .affects(WeightEffect::meaning);
}

MaskHead::MaskHead(const Scope& scope, const MaskHeadOptions& options, const NormOptions& norm,
                   RegionPooler pool, std::int64_t in, std::int64_t classes, std::int64_t first)
    : options_(options), pool_(std::move(pool)), first_(first) {
  const auto predictor = scope / "mask_predictor";
  for (std::int64_t i = 0; i < options.num_convs; ++i, in = options.conv_dim) {
    const auto place = scope / "mask_head" / i;
    convs_.emplace_back(place / 0, place / 1, Conv2d::Shape{in, options.conv_dim, 3}, norm);
  }
  upsample_ = Deconv2x2(predictor / "conv5_mask", in, options.conv_dim);
  predict_ = Conv2d(
      predictor / "mask_fcn_logits", {options.conv_dim, classes + first, 1},
      options.init_std > 0 ? Init{Init::Kind::normal, options.init_std} : Init{Init::Kind::he});
  predictor.set_classes("mask_fcn_logits", {1, first ? Background::first : Background::none});
}

at::Tensor MaskHead::logits(at::Tensor x, const at::Tensor& channels, const NormMode& mode) const {
  for (const auto& conv : convs_) x = conv(x, mode, {.activation = Activation::relu});
  x = relu_in_place(upsample_(x));
  const auto of = [&](const at::Tensor& rows) {  // (K, ...) -> (F, Q, ...)
    return rows.index_select(0, channels.flatten())
        .view({channels.size(0), channels.size(1), rows.size(1)});
  };
  const auto sums = PixelProducts::apply(x, of(predict_.weight.flatten(1)).to(x.scalar_type()));
  return (sums.to(at::kFloat) + of(predict_.bias.unsqueeze(1)))
      .view({x.size(0), channels.size(1), x.size(2), x.size(3)});
}

at::Tensor MaskHead::operator()(const Features& features, const at::Tensor& rois,
                                const at::Tensor& channels, const NormMode& mode) const {
  return logits(pool_(features.maps, rois, options_.pooler_resolution, mode), channels, mode);
}

LossSum MaskHead::loss(const Features& features, const SampledRegions& regions,
                       const std::vector<Truth>& truths, const StepInfo& step) const {
  const auto pack = pack_of(truths);
  auto rows = regions.samples.foreground, objects = regions.truth;
  if (const auto shaped = with_shape(*pack, objects)) {
    rows = rows.index_select(0, *shaped);
    objects = objects.index_select(0, *shaped);
  }
  const auto count = rows.size(0);
  const auto given = [&](const at::Tensor& sum) {
    const auto pixels = static_cast<double>(count * cells() * cells());
    return LossSum{"loss_mask", sum, {"mask pixels", pixels}};
  };
  if (count == 0 && step.objects_with_shape == 0) return given(features.maps[0].sum() * 0);
  const auto rois = regions.rois.index_select(0, rows);
  const auto pooled = regions.pooled.defined()
                          ? regions.pooled.index_select(0, rows)
                          : pool_(features.maps, rois, options_.pooler_resolution, features.mode);
  const auto channels = pack->labels.index_select(0, objects) + first_;
  const auto own = logits(pooled, channels.unsqueeze(1), features.mode).squeeze(1);
  if (count == 0) return given(own.sum());  // gradients of 0: other parts may have regions
  const auto target =
      mask_targets(*pack, truths, objects, rois.narrow(1, 1, 4), cells(), options_.target);
  if (step.metrics) add_metrics(own.detach(), target, *step.metrics);
  return given(binary_cross_entropy_sum(own, target));
}

at::Tensor MaskHead::detect(const Features& features, const std::vector<at::Tensor>& boxes,
                            const at::Tensor& labels) const {
  const auto channels = (labels + first_).unsqueeze(1);
  return at::sigmoid((*this)(features, as_rois(boxes), channels, NormMode{})).squeeze(1);
}

onnx::Value MaskHead::detect(const std::vector<onnx::Value>& maps, const RegionNodes& regions,
                             const onnx::Value& labels) const {
  auto& g = *labels.graph;
  const auto in = g.in("masks");
  auto x = pool_(maps, regions, options_.pooler_resolution);
  for (const auto& conv : convs_) x = conv(x, {.activation = Activation::relu});
  const auto logits = predict_(onnx::apply("Relu", upsample_(x)));
  const auto channel = first_ > 0 ? labels + static_cast<double>(first_) : labels;
  const auto own = onnx::gather_nd(logits, onnx::unsqueeze(channel, {1}), 1);
  return onnx::apply("Sigmoid", own);
}

}  // namespace millrace
