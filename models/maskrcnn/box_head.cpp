#include "millrace/models/maskrcnn/box_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "millrace/models/layers/relu.h"
#include "millrace/models/layers/truth_pack.h"
#include "millrace/models/onnx/operations.h"

namespace millrace {

void BoxHeadOptions::describe(Options& o) {
  o.add("box.type", type,
        "box head: 2fc = two linear layers; 4conv1fc = four convolutions and one linear layer; "
        "mean = mean of a region's cells")
      .affects(WeightEffect::tensors);
  o.add("box.norm", norm, "normalisation of the box head's convolutions",
        {Norm::none, Norm::gn, Norm::bn, Norm::sync_bn})
      .affects(WeightEffect::tensors, {"bn", "sync_bn"});
  o.add("box.pooler_resolution", pooler_resolution, "cells per side of the box head's regions",
        {.min = 1, .max = 64})
      .affects(WeightEffect::tensors);
  o.add("box.fc_dim", fc_dim, "width of the box head's linear layers", {.min = 1, .max = 16384})
      .affects(WeightEffect::tensors);
  o.add("box.cls_agnostic_bbox_reg", cls_agnostic_bbox_reg,
        "predict one box for all classes instead of one per class")
      .affects(WeightEffect::tensors);
  o.add("box.bbox_reg_loss_type", loss.bbox_reg_loss_type,
        "box loss: smooth_l1 of the deltas, or giou of the boxes");
  o.add("box.smooth_l1_beta", loss.smooth_l1_beta, "smooth-L1 beta of the regions' boxes; 0 = L1",
        {.min = 0});
  o.add("box.label_smoothing", label_smoothing,
        "share of a region's target probability that is spread over all classes",
        {.min = 0, .max = 0.999});
}

void BoxHeadOptions::check(const Config& table, const Options& defaults) const {
  if (type != BoxHeadType::four_conv_one_fc)
    defaults.refuse_unused(
        table, {"box.norm"},
        fmt::format("with box.type = \"{}\", which has no convolutions", value_name(type)));
  if (type == BoxHeadType::mean)
    defaults.refuse_unused(table, {"box.fc_dim"},
                           "with box.type = \"mean\", which has no linear layers");
  if (loss.bbox_reg_loss_type == BoxLossType::giou)
    defaults.refuse_unused(table, {"box.smooth_l1_beta"}, "with box.bbox_reg_loss_type = \"giou\"");
}

BoxHead::BoxHead(const Scope& head, const Scope& predictor, const BoxHeadOptions& options,
                 const BoxCoder& coder, std::int64_t in, std::int64_t classes, std::int64_t first)
    : options_(options), coder_(coder), classes_(classes), first_(first) {
  const Init xavier{Init::Kind::xavier};
  const auto cells = options.pooler_resolution * options.pooler_resolution;
  const auto width = options.type == BoxHeadType::mean ? in : options.fc_dim;
  if (options.type ==
      BoxHeadType::four_conv_one_fc) {  // names as in torchvision's sequence of modules
    for (std::int64_t i = 0; i < 4; ++i)
      convs_.emplace_back(head / i / 0, head / i / 1, Conv2d::Shape{in, in, 3},
                          NormOptions{.kind = options.norm});
    layers_ = {Linear(head / 5, in * cells, width, xavier)};
  } else if (options.type == BoxHeadType::two_fc) {
    layers_ = {Linear(head / "fc6", in * cells, width, xavier),
               Linear(head / "fc7", width, width, xavier)};
  }
  logits_ = Linear(predictor / "cls_score", width, classes + 1, {Init::Kind::normal, 0.01});
  deltas_ = Linear(predictor / "bbox_pred", width,
                   (options.cls_agnostic_bbox_reg ? 1 : classes + first) * 4,
                   {Init::Kind::normal, 0.001});
  predictor.set_classes("cls_score", {1, first ? Background::first : Background::last});
  if (!options.cls_agnostic_bbox_reg)
    predictor.set_classes("bbox_pred", {4, first ? Background::first : Background::none});
}

at::Tensor BoxHead::hidden(const at::Tensor& pooled, const NormMode& mode) const {
  auto x = pooled;
  for (const auto& conv : convs_) x = conv(x, mode, {.activation = Activation::relu});
  if (options_.type == BoxHeadType::mean) return x.mean({2, 3});
  x = x.flatten(1);  // in the order (C, H, W)
  for (const auto& layer : layers_) x = relu_in_place(layer(x));
  return x;
}

BoxHead::Output BoxHead::operator()(const at::Tensor& pooled, const NormMode& mode) const {
  const auto x = hidden(pooled, mode);
  const auto deltas = deltas_(x).to(at::kFloat);
  return {logits_(x).to(at::kFloat), deltas.view({deltas.size(0), deltas.size(1) / 4, 4})};
}

LossSums BoxHead::losses(const Output& output, const SampledRegions& regions,
                         const std::vector<Truth>& truths, const StepInfo& step,
                         const std::string& number) const {
  const auto count = output.logits.size(0);
  const auto given = [&](const at::Tensor& classification, const at::Tensor& regression) {
    const LossDivisor divisor{"box regions" + number, static_cast<double>(count)};
    return LossSums{{"loss_classifier" + number, classification, divisor},
                    {"loss_box_reg" + number, regression, divisor}};
  };
  if (count == 0) return given(output.logits.sum(), output.deltas.sum());  // gradients of 0
  const auto pack = pack_of(truths);
  const auto& foreground = regions.samples.foreground;
  const auto own = pack->labels.index_select(0, regions.truth) + first_;  // (F)
  const auto labels = at::full({count}, background(), own.options());
  labels.index_copy_(0, foreground, own);
  const auto groups = output.deltas.size(1);
  const auto group =
      foreground * groups + (options_.cls_agnostic_bbox_reg ? at::zeros_like(own) : own);
  const auto predicted = output.deltas.reshape({-1, 4}).index_select(0, group);  // (F, 4)
  if (step.metrics)
    add_metrics(output.logits, labels, foreground, static_cast<double>(truths.size()),
                *step.metrics, number);
  return given(at::cross_entropy_loss(output.logits, labels, /*weight=*/{}, at::Reduction::Sum,
                                      /*ignore_index=*/-100, options_.label_smoothing),
               options_.loss.sum(coder_, regions.rois.narrow(1, 1, 4).index_select(0, foreground),
                                 predicted, pack->boxes.index_select(0, regions.truth)));
}

void BoxHead::add_metrics(const at::Tensor& logits, const at::Tensor& labels,
                          const at::Tensor& foreground, double images, Metrics& metrics,
                          const std::string& number) const {
  const auto said = logits.detach().argmax(1), right = said == labels;
  const auto objects = said.index_select(0, foreground);
  const auto count = static_cast<double>(foreground.size(0));
  const auto all = static_cast<double>(labels.size(0));
  const auto share = [&](const char* name, const at::Tensor& fits) {
    const auto part = fits.sum();
    metrics.add(name + number, part, at::full_like(part, fits.numel()));
  };
  share("box/accuracy", right);
  share("box/fg_accuracy", right.index_select(0, foreground));
  share("box/false_negatives", objects == background());
  metrics.add("box/fg" + number, count, images);
  metrics.add("box/bg" + number, all - count, images);
}

at::Tensor BoxHead::scores(const Output& output) const {
  return at::softmax(output.logits, 1).narrow(1, first_, classes_);
}

at::Tensor BoxHead::boxes(const at::Tensor& deltas, const at::Tensor& regions) const {
  const auto own = options_.cls_agnostic_bbox_reg ? deltas : deltas.narrow(1, first_, classes_);
  return coder_.decode(regions, own.flatten(1)).view({regions.size(0), own.size(1), 4});
}

BoxHead::Nodes BoxHead::operator()(const onnx::Value& pooled) const {
  auto x = pooled;
  for (const auto& conv : convs_) x = conv(x, {.activation = Activation::relu});
  if (options_.type == BoxHeadType::mean)
    x = x.graph->add("ReduceMean", {x},
                     {{"axes", onnx::Ints{2, 3}}, {"keepdims", std::int64_t{0}}});
  else
    x = x.graph->add("Flatten", {x}, {{"axis", std::int64_t{1}}});
  for (const auto& layer : layers_) x = onnx::apply("Relu", layer(x));
  return {logits_(x), onnx::reshape(deltas_(x), {0, deltas_.weight.size(0) / 4, 4})};
}

onnx::Value BoxHead::scores(const Nodes& output) const {
  const auto all =
      output.logits.graph->add("Softmax", {output.logits}, {{"axis", std::int64_t{1}}});
  return onnx::slice(all, 1, first_, first_ + classes_);
}

onnx::Value BoxHead::boxes(const onnx::Value& deltas, const onnx::Value& regions) const {
  const auto own =
      options_.cls_agnostic_bbox_reg ? deltas : onnx::slice(deltas, 1, first_, first_ + classes_);
  return coder_.decode(onnx::unsqueeze(regions, {1}), own);
}

}  // namespace millrace
