// Set prediction losses: each object is matched to one query by linear assignment (Carion et al.
// 2020, "DETR"). Shapes: N images, Q queries, K classes, F pairs of a query and an object.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "decoder.h"
#include "denoising.h"
#include "options.h"

namespace millrace::rtdetr {

/// Queries and their matched objects.
struct Pairs {
  at::Tensor queries;  // (F) int64: index among the N Q queries
  at::Tensor labels;   // (F) int64
  at::Tensor boxes;    // (F, 4)
};

/// Returns the pairs with the least total cost in each image, in the order of the objects. The cost
/// sums the focal class cost, the L1 distance and the generalised IoU of the boxes. If an image has
/// more objects than queries, some objects are not matched.
Pairs match(const Prediction& prediction, const std::vector<Target>& targets,
            const MatchOptions& options);

/// Returns the positive denoising queries and their objects. `targets` are those of
/// denoising_queries().
Pairs denoising_pairs(const std::vector<Target>& targets, const DenoisingShape& shape);

/// Weighted sums of the losses; the caller normalises them.
struct SetLosses {
  at::Tensor classes;  // varifocal loss (Zhang et al. 2021), whose target is the pair's IoU
  at::Tensor l1, giou;
};
SetLosses& operator+=(SetLosses& sums, const SetLosses& more);

SetLosses set_losses(const Prediction& prediction, const Pairs& pairs, const LossOptions& options);

}  // namespace millrace::rtdetr
