// Tensors by name, in a fixed order; for headers that need not know what a tensor is.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace at {
class Tensor;
}

namespace millrace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace millrace
