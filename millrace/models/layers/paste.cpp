#include "millrace/models/layers/paste.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <algorithm>
#include <vector>

namespace millrace {
namespace {

coco::Rle paste_padded(const float* probabilities, std::int64_t size, const Box& box,
                       std::uint32_t height, std::uint32_t width) {
  const float grow = static_cast<float>(size + 2) / static_cast<float>(size);
  const float cx = (box.x2 + box.x1) * 0.5F, cy = (box.y2 + box.y1) * 0.5F;
  const float half_w = (box.x2 - box.x1) * 0.5F * grow, half_h = (box.y2 - box.y1) * 0.5F * grow;
  const auto x1 = static_cast<std::int64_t>(cx - half_w),
             y1 = static_cast<std::int64_t>(cy - half_h);
  const auto x2 = static_cast<std::int64_t>(cx + half_w),
             y2 = static_cast<std::int64_t>(cy + half_h);
  const std::array<std::int64_t, 2> sides{std::max<std::int64_t>(y2 - y1 + 1, 1),
                                          std::max<std::int64_t>(x2 - x1 + 1, 1)};

  const auto mask =
      at::from_blob(const_cast<float*>(probabilities), {1, 1, size, size}, at::kFloat);
  const auto resized = at::upsample_bilinear2d(at::constant_pad_nd(mask, {1, 1, 1, 1}), sides,
                                               /*align_corners=*/false)
                           .contiguous();
  const auto* values = resized.data_ptr<float>();

  std::vector<std::uint8_t> bitmap(static_cast<std::size_t>(height) * width);
  for (auto y = std::max<std::int64_t>(y1, 0); y < std::min<std::int64_t>(y2 + 1, height); ++y)
    for (auto x = std::max<std::int64_t>(x1, 0); x < std::min<std::int64_t>(x2 + 1, width); ++x)
      bitmap[static_cast<std::size_t>(y * width + x)] =
          values[(y - y1) * sides[1] + (x - x1)] > 0.5F;
  return coco::encode(bitmap.data(), height, width);
}

}  // namespace

coco::Rle paste_mask(const std::string& kind, const float* probabilities, std::int64_t size,
                     const Box& box, std::uint32_t height, std::uint32_t width) {
  return kind == "padded" ? paste_padded(probabilities, size, box, height, width)
                          : coco::paste(probabilities, static_cast<int>(size), box, height, width);
}

}  // namespace millrace
