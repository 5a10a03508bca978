// Losses of a set of predictions: each object belongs to one query, found by assignment (Carion et
// al. 2020, "DETR"). Shapes: N images, Q queries, K classes, F pairs of a query and an object.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "decoder.h"
#include "denoising.h"
#include "options.h"

namespace rtdetr {

/// Queries and the objects that they should predict.
struct Pairs {
  at::Tensor queries;  // (F) int64, n Q + q
  at::Tensor labels;   // (F) int64
  at::Tensor boxes;    // (F, 4)
};

/// The cheapest pairs in each image, objects in their order: focal cost of the class, L1 distance
/// and generalised IoU of the boxes. With more objects than queries some have none.
Pairs match(const Prediction& prediction, const std::vector<Target>& targets,
            const MatchOptions& options);

/// Denoising queries and the objects that they are near; `targets` as they were made from.
Pairs denoising_pairs(const std::vector<Target>& targets, const DenoisingShape& shape);

/// Weighted sums; the caller divides.
struct SetLosses {
  at::Tensor classes;  // varifocal (Zhang et al. 2021): a pair's class should be its boxes' IoU
  at::Tensor l1, giou;
};
SetLosses& operator+=(SetLosses& sums, const SetLosses& more);

SetLosses set_losses(const Prediction& prediction, const Pairs& pairs, const LossOptions& options);

}  // namespace rtdetr
