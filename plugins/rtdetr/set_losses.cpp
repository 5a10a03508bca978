#include "set_losses.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "assignment.h"
#include "box_forms.h"

namespace millrace::rtdetr {
namespace {

/// Returns the focal cost (Q, G) of queries with logits (Q, K) for the classes of `labels` (G).
at::Tensor class_cost(const at::Tensor& logits, const at::Tensor& labels,
                      const MatchOptions& options) {
  constexpr double kLeast = 1e-8;
  const auto p = at::sigmoid(logits.index_select(1, labels));
  const auto positive_term =
      (1 - p).pow(options.focal_loss_gamma) * (p + kLeast).log() * options.focal_loss_alpha;
  const auto negative_term =
      p.pow(options.focal_loss_gamma) * (1 - p + kLeast).log() * (1 - options.focal_loss_alpha);
  return negative_term - positive_term;
}

/// Returns the cost (Q, G) of matching queries with logits (Q, K) and boxes (Q, 4) to objects with
/// `labels` (G) and `own` boxes (G, 4). Costs that are not finite become the largest float.
at::Tensor costs_of(const at::Tensor& logits, const at::Tensor& boxes, const at::Tensor& labels,
                    const at::Tensor& own, const MatchOptions& options) {
  const auto box = boxes.unsqueeze(1), object = own.unsqueeze(0);
  const auto cost = options.bbox_weight * (box - object).abs().sum(-1) +
                    options.class_weight * class_cost(logits, labels, options) -
                    options.giou_weight * overlap_of(to_corners(box), to_corners(object)).giou;
  constexpr double kMost = std::numeric_limits<float>::max();
  return at::nan_to_num(cost, kMost, kMost, kMost);
}

/// Computes the costs (G, Q) of all objects of `target` as double, in chunks to limit memory.
at::Tensor costs_of(const at::Tensor& logits, const at::Tensor& boxes, const Target& target,
                    const MatchOptions& options) {
  constexpr std::int64_t kTogether = 256;
  const auto objects = target.labels.size(0);
  auto costs = at::empty({objects, boxes.size(0)}, at::kDouble);
  for (std::int64_t first = 0; first < objects; first += kTogether) {
    const auto count = std::min(kTogether, objects - first);
    costs.narrow(0, first, count)
        .copy_(costs_of(logits, boxes, target.labels.narrow(0, first, count),
                        target.boxes.narrow(0, first, count), options)
                   .t());
  }
  return costs;
}

/// Returns pairs with the labels and boxes of `objects` (F), indices among the objects of all
/// images.
Pairs pairs_of(const at::Tensor& queries, const at::Tensor& objects,
               const std::vector<Target>& targets) {
  std::vector<at::Tensor> labels, boxes;
  for (const auto& target : targets) {
    labels.push_back(target.labels);
    boxes.push_back(target.boxes);
  }
  return {queries, at::cat(labels).index_select(0, objects),
          at::cat(boxes).index_select(0, objects)};
}

}  // namespace

Pairs match(const Prediction& prediction, const std::vector<Target>& targets,
            const MatchOptions& options) {
  const auto logits = prediction.logits.detach(), boxes = prediction.boxes.detach();
  const auto images = std::ssize(targets), queries = boxes.size(1);
  std::vector<at::Tensor> costs;
  for (std::int64_t i = 0; i < images; ++i)
    costs.push_back(costs_of(logits[i], boxes[i], targets[static_cast<std::size_t>(i)], options));
  std::vector<std::vector<std::int64_t>> query_of(targets.size());
  at::parallel_for(0, images, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto& cost = costs[static_cast<std::size_t>(i)];
      query_of[static_cast<std::size_t>(i)] =
          assign({cost.const_data_ptr<double>(), static_cast<std::size_t>(cost.numel())},
                 cost.size(0), queries);
    }
  });
  std::vector<std::int64_t> rows, objects;
  std::int64_t object = 0;
  for (std::size_t i = 0; i < query_of.size(); ++i)
    for (const auto query : query_of[i]) {
      if (query >= 0) {
        rows.push_back(static_cast<std::int64_t>(i) * queries + query);
        objects.push_back(object);
      }
      ++object;
    }
  return pairs_of(at::tensor(rows, at::kLong), at::tensor(objects, at::kLong), targets);
}

Pairs denoising_pairs(const std::vector<Target>& targets, const DenoisingShape& shape) {
  std::vector<at::Tensor> rows, objects;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto count = targets[i].labels.size(0);
    const auto own = at::arange(count, at::kLong);
    for (std::int64_t group = 0; group < shape.groups; ++group) {
      rows.push_back(own +
                     (static_cast<std::int64_t>(i) * shape.queries() + group * 2 * shape.most));
      objects.push_back(own + first);
    }
    first += count;
  }
  return pairs_of(at::cat(rows), at::cat(objects), targets);
}

SetLosses& operator+=(SetLosses& sums, const SetLosses& more) {
  const auto add = [](at::Tensor& sum, const at::Tensor& one) {
    sum = sum.defined() ? sum + one : one;
  };
  add(sums.classes, more.classes);
  add(sums.l1, more.l1);
  add(sums.giou, more.giou);
  return sums;
}

SetLosses set_losses(const Prediction& prediction, const Pairs& pairs, const LossOptions& options) {
  const auto boxes = prediction.boxes.flatten(0, 1).index_select(0, pairs.queries);
  const auto overlap = overlap_of(to_corners(boxes), to_corners(pairs.boxes));

  const auto logits = prediction.logits.flatten(0, 1);  // (N Q, K)
  const auto target = at::zeros_like(logits);
  auto weight = at::sigmoid(logits.detach()).pow(options.varifocal_gamma) * options.varifocal_alpha;
  const auto iou = overlap.iou.detach();
  target.index_put_({pairs.queries, pairs.labels}, iou);
  weight.index_put_({pairs.queries, pairs.labels}, iou);
  const auto classes = at::binary_cross_entropy_with_logits(logits, target, weight,
                                                            /*pos_weight=*/{}, at::Reduction::Sum);
  return {options.class_weight * classes,
          options.bbox_weight * at::l1_loss(boxes, pairs.boxes, at::Reduction::Sum),
          options.giou_weight * (1 - overlap.giou).sum()};
}

}  // namespace millrace::rtdetr
