// How many bytes a tensor takes, for shapes that come from a file and cannot be trusted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>

namespace millrace {

/// Nothing where a side is negative or the product is too large for any tensor.
inline std::optional<std::uint64_t> byte_count(std::span<const std::int64_t> shape,
                                               at::ScalarType type) {
  std::int64_t strides = static_cast<std::int64_t>(c10::elementSize(type));
  bool empty = false;
  for (const auto side : shape) {
    empty = empty || side == 0;
    if (side < 0 || __builtin_mul_overflow(strides, side > 0 ? side : 1, &strides)) return {};
  }
  return empty ? 0 : static_cast<std::uint64_t>(strides);
}

}  // namespace millrace
