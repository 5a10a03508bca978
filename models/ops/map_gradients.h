// The gradients of a pyramid's maps, summed where they are made. Each pooling of a step (of
// anchors, boxes, masks) would make maps of its own, the largest tensors of a step, to be added up.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace millrace {

/// Sums, those of maps (N, C, H_l, W_l), float or double, channels last; undefined: zero so far.
struct MapGradients final : torch::CustomClassHolder {
  std::vector<at::Tensor> sums;
};

/// The same maps, for roi_align alone or beside other uses: on a CPU its backward passes add to one
/// sum. On other devices, or without gradients, the maps themselves.
std::vector<at::Tensor> with_shared_gradients(const std::vector<at::Tensor>& maps);

/// Those of these maps, which are the first of such ones; nullptr: of others.
c10::intrusive_ptr<MapGradients> shared_gradients(at::TensorList maps);

}  // namespace millrace
