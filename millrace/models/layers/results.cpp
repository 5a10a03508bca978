#include "millrace/models/layers/results.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "millrace/models/layers/paste.h"
#include "millrace/models/ops/boxes.h"

namespace millrace {

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
