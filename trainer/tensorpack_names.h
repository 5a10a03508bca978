// tensorpack's names and layout of a ResNet's tensors, turned into ours (torchvision's).
#pragma once

#include <string>
#include <vector>

#include "trainer/safetensors.h"

namespace millrace {

/// A tensor of a weight file under our name.
struct StoredTensor {
  std::string stored_as;  // its name in the file; empty where the file only implies it
  std::string name;       // ours
  at::Tensor value;
};

/// conv0/W -> backbone.body.conv1.weight, group0/block1/conv2/bn/gamma -> backbone.body.layer1.1.bn2.weight and so
/// on; kernels from (H, W, in, out) to (out, in, H, W). Other names stay as they are.
///
/// A convolution that has a bias (`b`) instead of a `bn` has its batch norm folded into it. Ours has no bias but a norm,
/// so the bias becomes the norm's, which is otherwise made to do nothing: weight 1, mean 0, variance 1 - 1e-5, for
/// which norms with the usual epsilon of 1e-5 scale by exactly 1 (others are off by a factor of under 1 + 5e-6).
std::vector<StoredTensor> from_tensorpack(const NamedTensors& tensors);

}  // namespace millrace
