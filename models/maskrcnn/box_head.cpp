#include "models/maskrcnn/box_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>

#include <algorithm>

#include "models/layers/losses.h"

namespace millrace {

void BoxHeadOptions::describe(Options& o) {
  o.add("roi_beta", beta, "smooth-L1 beta of the regions' boxes; 0 is L1", {.min = 0});
  o.add("box_size", size, "cells of the box head's regions", {.min = 1, .max = 64});
  o.add("box_channels", channels, "width of the box head's two layers", {.min = 1});
}

void BoxHeadOptions::use_torchvision() { beta = 1.0 / 9; }

BoxHead::BoxHead(const Scope& head, const Scope& predictor, const BoxHeadOptions& options,
                 const BoxCoder& coder, std::int64_t in, std::int64_t classes, std::int64_t first)
    : options_(options), coder_(coder), classes_(classes), first_(first) {
  const Init xavier{Init::Kind::xavier};
  const auto width = options.channels;
  fc6_ = Linear(head / "fc6", in * options.size * options.size, width, xavier);
  fc7_ = Linear(head / "fc7", width, width, xavier);
  logits_ = Linear(predictor / "cls_score", width, classes + 1, {Init::Kind::normal, 0.01});
  deltas_ =
      Linear(predictor / "bbox_pred", width, (classes + first) * 4, {Init::Kind::normal, 0.001});
}

at::Tensor BoxHead::hidden(const at::Tensor& pooled) const {
  return at::relu(fc7_(at::relu(fc6_(pooled.flatten(1)))));  // flattened as (C, H, W)
}

BoxHead::Output BoxHead::operator()(const at::Tensor& pooled) const {
  const auto x = hidden(pooled);
  return {logits_(x), deltas_(x).view({-1, classes_ + first_, 4})};
}

BoxHead::Loss BoxHead::loss(const Output& output, const std::vector<SampledRegions>& regions,
                            const std::vector<Truth>& truths) const {
  const auto background = first_ ? 0 : classes_;
  std::vector<at::Tensor> labels, foreground, foreground_labels, targets;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto& [boxes, truth, count] = regions[i];
    const auto total = boxes.size(0);
    const auto label = truths[i].labels.index_select(0, truth) + first_;
    labels.push_back(label);
    labels.push_back(at::full({total - count}, background, at::kLong));
    foreground.push_back(at::arange(first, first + count, at::kLong));
    foreground_labels.push_back(label);
    targets.push_back(
        coder_.encode(boxes.narrow(0, 0, count), truths[i].boxes.index_select(0, truth)));
    first += total;
  }
  const auto predicted =
      output.deltas.index({at::cat(foreground), at::cat(foreground_labels)});  // (F, 4)
  return {at::cross_entropy_loss(output.logits, at::cat(labels)),
          smooth_l1_sum(predicted, at::cat(targets), options_.beta) /
              static_cast<double>(std::max<std::int64_t>(1, first))};
}

at::Tensor BoxHead::scores(const Output& output) const {
  return at::softmax(output.logits, 1).narrow(1, first_, classes_);
}

at::Tensor BoxHead::boxes(const at::Tensor& deltas, const at::Tensor& regions) const {
  return coder_.decode(regions, deltas.narrow(1, first_, classes_).flatten(1))
      .view({-1, classes_, 4});
}

}  // namespace millrace
