#include "models/maskrcnn/regions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include "models/ops/roi_align.h"

namespace millrace {

at::Tensor region_levels(const at::Tensor& boxes, const MaskRcnnOptions& options) {
  const auto side =
      ((boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1)))
          .sqrt();
  const auto level = (side / options.level_canonical_size + options.level_epsilon).log2() + 4 +
                     options.level_epsilon_after_log;
  return level.floor().clamp(2, 5).to(at::kLong);
}

at::Tensor pool_regions(const std::vector<at::Tensor>& features, const at::Tensor& rois,
                        std::int64_t size, const MaskRcnnOptions& options) {
  const auto levels = region_levels(rois.narrow(1, 1, 4), options);
  std::vector<at::Tensor> order, pooled;
  for (std::int64_t level = 2; level <= 5; ++level) {
    const auto here = (levels == level).nonzero().squeeze(1);
    if (here.size(0) == 0) continue;
    order.push_back(here);
    pooled.push_back(roi_align(features[static_cast<std::size_t>(level - 2)].to(at::kFloat),
                               rois.index_select(0, here),
                               {size, 1.0 / static_cast<double>(1 << level),
                                options.roi_sampling_ratio, options.roi_aligned}));
  }
  if (order.empty())
    return roi_align(features[0].to(at::kFloat), rois,
                     {size, 0.25, options.roi_sampling_ratio, options.roi_aligned});
  if (order.size() == 1) return pooled[0];
  return at::cat(pooled).index_select(0, at::argsort(at::cat(order)));
}

at::Tensor as_rois(const std::vector<at::Tensor>& boxes) {
  std::vector<at::Tensor> rois;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    rois.push_back(at::cat(
        {at::full({boxes[i].size(0), 1}, static_cast<double>(i), at::kFloat), boxes[i]}, 1));
  return at::cat(rois);
}

}  // namespace millrace
