// Conversion of recorded masks.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "millrace/coco/data/annotations.h"
#include "millrace/coco/masks/masks.h"

namespace millrace::testing {

/// Encodes a byte mask [H, W] as run lengths.
inline coco::Rle encoded(const at::Tensor& mask) {
  return coco::encode(mask.contiguous().const_data_ptr<std::uint8_t>(),
                      static_cast<std::uint32_t>(mask.size(0)),
                      static_cast<std::uint32_t>(mask.size(1)));
}

/// Recorded masks [G, H, W], and the mask matched to each region, by index [R].
struct RecordedShapes {
  RecordedShapes(const at::Tensor& masks, const at::Tensor& index) {
    for (std::int64_t i = 0; i < masks.size(0); ++i) all.emplace_back(encoded(masks[i]));
    for (std::int64_t i = 0; i < index.size(0); ++i)
      matched.push_back(&all[static_cast<std::size_t>(index[i].item<std::int64_t>())]);
  }

  std::vector<coco::Segmentation> all;
  std::vector<const coco::Segmentation*> matched;
};

}  // namespace millrace::testing
