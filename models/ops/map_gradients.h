// Sums the gradients of a pyramid's maps in place. Otherwise each pooling of a step (of anchors,
// boxes, masks) would allocate gradients of its own, the largest tensors of a step, and add them
// up.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace millrace {

/// Sums of gradients of maps (N, C, H_l, W_l), float or double, channels last; undefined = zero so
/// far.
struct MapGradients final : torch::CustomClassHolder {
  std::vector<at::Tensor> sums;
};

/// Returns the same maps, for roi_align alone or beside other uses. On the CPU its backward passes
/// add to one sum. On other devices, or without gradients, the maps themselves are returned.
std::vector<at::Tensor> with_shared_gradients(const std::vector<at::Tensor>& maps);

/// Returns the shared gradients if `maps` are the first of a result of with_shared_gradients; else
/// nullptr.
c10::intrusive_ptr<MapGradients> shared_gradients(at::TensorList maps);

}  // namespace millrace
