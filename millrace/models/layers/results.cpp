#include "millrace/models/layers/results.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <algorithm>
#include <array>

#include "millrace/models/ops/boxes.h"

namespace millrace {

coco::Rle paste_mask(const std::string& kind, const float* probabilities, std::int64_t size,
                     const Box& box, std::uint32_t height, std::uint32_t width) {
  if (kind != "padded")
    return coco::paste(probabilities, static_cast<int>(size), box, height, width);
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

std::vector<std::vector<DetectedObject>> in_original_pixels(const Batch& batch,
                                                            const std::vector<Found>& found,
                                                            const at::Tensor& masks,
                                                            const std::string& paste) {
  std::vector<std::vector<DetectedObject>> result(batch.size());
  const auto own_masks = masks.defined() ? masks.cpu() : masks;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& image = batch.images[i];
    const auto scale =
        at::tensor({image.scale_x, image.scale_y, image.scale_x, image.scale_y}, at::kFloat);
    const auto boxes =
        clip_boxes(found[i].boxes.cpu() / scale, image.original_height, image.original_width)
            .contiguous();
    const auto scores = found[i].scores.cpu().contiguous(),
               labels = found[i].labels.cpu().contiguous();
    const auto* box = boxes.data_ptr<float>();
    result[i].resize(static_cast<std::size_t>(boxes.size(0)));
    at::parallel_for(0, boxes.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t d = begin; d < end; ++d) {
        auto& object = result[i][static_cast<std::size_t>(d)];
        object.box = {box[d * 4], box[d * 4 + 1], box[d * 4 + 2], box[d * 4 + 3]};
        object.score = scores.data_ptr<float>()[d];
        object.label = static_cast<std::int32_t>(labels.data_ptr<std::int64_t>()[d]);
        if (!own_masks.defined()) continue;
        const auto size = own_masks.size(1);
        object.mask =
            paste_mask(paste, own_masks.data_ptr<float>() + (first + d) * size * size, size,
                       object.box, static_cast<std::uint32_t>(image.original_height),
                       static_cast<std::uint32_t>(image.original_width));
      }
    });
    first += boxes.size(0);
  }
  return result;
}

}  // namespace millrace
