#include "millrace/models/layers/cells.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>

namespace millrace {

at::Tensor cells_of(std::int64_t height, std::int64_t width, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto columns = at::arange(width, options).expand({height, width});
  const auto rows = at::arange(height, options).unsqueeze(1).expand({height, width});
  return at::stack({columns, rows}, 2).view({-1, 2});
}

}  // namespace millrace
