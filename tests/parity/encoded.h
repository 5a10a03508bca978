// Recorded masks in our form.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/coco/masks/masks.h"

namespace millrace::testing {

/// A mask (H, W) of bytes in run lengths.
inline coco::Rle encoded(const at::Tensor& mask) {
  return coco::encode(mask.contiguous().const_data_ptr<std::uint8_t>(),
                      static_cast<std::uint32_t>(mask.size(0)),
                      static_cast<std::uint32_t>(mask.size(1)));
}

}  // namespace millrace::testing
