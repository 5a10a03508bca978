#include "millrace/models/maskrcnn/regions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

#include "millrace/models/ops/roi_align.h"

namespace millrace {

void PoolOptions::describe(Options& o) {
  o.add("roi.sampling_ratio", sampling_ratio, "ROIAlign samples per cell and axis; 0: adaptive",
        {.min = 0, .max = 16})
      .decides(OfWeights::meaning);
  o.add("roi.aligned", aligned, "ROIAlign with the half-pixel shift").decides(OfWeights::meaning);
  o.add("roi.level_eps", level_epsilon, "added inside the logarithm that picks a region's level",
        {.min = 0})
      .decides(OfWeights::meaning);
  o.add("roi.level_eps_after_log", level_epsilon_after_log,
        "added after that logarithm (torchvision)", {.min = 0})
      .decides(OfWeights::meaning);
  o.add("roi.canonical_box_size", level_canonical_size, "regions of this side go to P4",
        {.min = 1, .unit = "px"})
      .decides(OfWeights::meaning);
}

at::Tensor region_levels(const at::Tensor& boxes, const PoolOptions& options) {
  const auto side =
      ((boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1)))
          .sqrt();
  constexpr double kNoSide = 1e-30;  // far below P2, and its logarithm is finite
  const auto level =
      (side / options.level_canonical_size + options.level_epsilon).clamp_min(kNoSide).log2() + 4 +
      options.level_epsilon_after_log;
  return level.floor().clamp(2, 5).nan_to_num(2).to(at::kLong);
}

at::Tensor pool_regions(const std::vector<at::Tensor>& features, const at::Tensor& rois,
                        std::int64_t size, const PoolOptions& options) {
  return roi_align(at::TensorList(features).slice(0, 4), rois,
                   region_levels(rois.narrow(1, 1, 4), options) - 2,
                   {size, size, 1.0 / 4, options.sampling_ratio, options.aligned});
}

at::Tensor as_rois(const std::vector<at::Tensor>& boxes) {
  std::vector<at::Tensor> rois;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    rois.push_back(at::cat(
        {at::full({boxes[i].size(0), 1}, static_cast<double>(i), boxes[i].options()), boxes[i]},
        1));
  return at::cat(rois);
}

}  // namespace millrace
