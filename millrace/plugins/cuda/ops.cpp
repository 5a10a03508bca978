// The operators of millrace/models/ops/operators.cpp on a GPU: takes tensors apart and calls the
// kernels.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "millrace/plugins/cuda/boxes.h"
#include "millrace/plugins/cuda/mask_targets.h"
#include "millrace/plugins/cuda/roi_align.h"

namespace millrace {
namespace {

cuda::Stream stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

at::Tensor plain(const at::Tensor& values) { return values.to(at::kFloat).contiguous(); }

/// Which of the boxes NMS keeps, (count) bool; see cuda::nms.
at::Tensor stays(const at::Tensor& boxes, const at::Tensor& valid, const at::Tensor& begins,
                 std::int64_t most, double threshold, double offset) {
  const auto count = boxes.size(0);
  const auto bytes = static_cast<std::int64_t>(cuda::nms_scratch_bytes(count, most));
  auto scratch = at::empty({bytes}, boxes.options().dtype(at::kByte));
  auto keep = at::empty({count}, boxes.options().dtype(at::kBool));
  // The largest float that is not above the threshold: comparing with it is comparing with the
  // double itself.
  auto limit = static_cast<float>(threshold);
  if (limit > threshold) limit = std::nextafter(limit, -1.0F);
  cuda::nms(boxes.const_data_ptr<float>(),
            reinterpret_cast<const std::uint8_t*>(valid.const_data_ptr<bool>()),
            begins.const_data_ptr<std::int64_t>(), begins.size(0) - 1, count, most, limit,
            static_cast<float>(offset), scratch.mutable_data_ptr(),
            reinterpret_cast<std::uint8_t*>(keep.mutable_data_ptr<bool>()), stream_of(boxes));
  return keep;
}

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
               double threshold, double offset) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const auto count = scores.size(0);
  if (count == 0) return at::empty({0}, scores.options().dtype(at::kLong));
  const auto by_score = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  // by_group: places in by_score
  const auto [sorted, by_group] = groups.index_select(0, by_score).sort(/*stable=*/true, 0, false);
  const auto sizes = std::get<2>(at::unique_consecutive(sorted, false, true));
  const auto begins = at::cat({at::zeros({1}, sizes.options()), sizes.cumsum(0)});
  const auto order = by_score.index_select(0, by_group);
  const auto keep = stays(plain(boxes.index_select(0, order)),
                          at::ones({count}, boxes.options().dtype(at::kBool)), begins,
                          sizes.max().item<std::int64_t>(), threshold, offset);
  auto by_rank = at::empty_like(keep);
  by_rank.index_copy_(0, by_group, keep);
  return by_score.masked_select(by_rank);
}

std::vector<at::Tensor> proposals(const at::Tensor& logits, const at::Tensor& deltas,
                                  const at::Tensor& anchors, at::IntArrayRef level_counts,
                                  at::ArrayRef<double> sizes, std::int64_t before,
                                  std::int64_t after, double threshold, double min_side,
                                  bool by_probability, at::ArrayRef<double> weights,
                                  double max_log_scale, double offset) {
  const c10::cuda::CUDAGuard guard(logits.device());
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const auto images = logits.size(0);
  const auto all_logits = plain(logits), all_deltas = plain(deltas), all_anchors = plain(anchors);
  const auto finite = at::where(at::isfinite(all_logits), all_logits, kLeast);

  // The best of each level, (N, K) over the levels.
  std::vector<at::Tensor> chosen, ranks;
  std::vector<std::int64_t> begins{0};
  std::int64_t first = 0, most = 0;
  for (const auto count : level_counts) {
    const auto k = std::min(count, before);
    auto [values, index] = finite.narrow(1, first, count).sort(/*stable=*/true, 1, true);
    values = values.narrow(1, 0, k), index = index.narrow(1, 0, k) + first;
    if (by_probability) {
      const auto by_value = at::sigmoid(values).sort(/*stable=*/true, 1, true);
      index = index.gather(1, std::get<1>(by_value));
      values = at::where(at::isfinite(values), std::get<0>(by_value), kLeast);
    }
    ranks.push_back(values), chosen.push_back(index);
    first += count;
    most = std::max(most, k);
    begins.push_back(begins.back() + k);
  }
  const auto index = at::cat(chosen, 1).contiguous(), rank = at::cat(ranks, 1).contiguous();
  const auto each = begins.back(), total = images * each;
  std::vector<std::int64_t> all_begins;
  for (std::int64_t image = 0; image < images; ++image)
    for (std::size_t level = 0; level < level_counts.size(); ++level)
      all_begins.push_back(image * each + begins[level]);
  all_begins.push_back(total);
  const auto image_of = at::arange(images, index.options()).repeat_interleave(each);
  const auto device_sizes = at::tensor(sizes, all_logits.options());
  auto boxes = at::empty({total, 4}, all_logits.options());
  auto valid = at::empty({total}, all_logits.options().dtype(at::kBool));
  cuda::BoxDecoding coding{{}, static_cast<float>(max_log_scale), static_cast<float>(offset)};
  std::copy(weights.begin(), weights.end(), coding.weights);
  cuda::decode_chosen({all_anchors.const_data_ptr<float>(), all_deltas.const_data_ptr<float>(),
                       rank.const_data_ptr<float>(), device_sizes.const_data_ptr<float>(),
                       index.const_data_ptr<std::int64_t>(),
                       image_of.const_data_ptr<std::int64_t>(), total, all_anchors.size(0)},
                      coding, static_cast<float>(min_side), boxes.mutable_data_ptr<float>(),
                      reinterpret_cast<std::uint8_t*>(valid.mutable_data_ptr<bool>()),
                      stream_of(logits));
  const auto keep =
      stays(boxes, valid, at::tensor(all_begins, index.options()), most, threshold, offset)
          .view({images, each});

  const auto order = std::get<1>(at::where(keep, rank, kLeast).sort(/*stable=*/true, 1, true));
  const auto counts = keep.sum(1).to(at::kCPU);  // the only copy to the host
  const auto* count = counts.const_data_ptr<std::int64_t>();
  std::vector<at::Tensor> result;
  for (std::int64_t image = 0; image < images; ++image)
    result.push_back(
        boxes.narrow(0, image * each, each)
            .index_select(0, order[image].narrow(0, 0, std::min(count[image], after))));
  return result;
}

cuda::RoiAlignSwitches switches_of(std::int64_t height, std::int64_t width,
                                   std::int64_t sampling_ratio, bool aligned) {
  return {static_cast<int>(height), static_cast<int>(width), static_cast<int>(sampling_ratio),
          aligned};
}

cuda::Regions regions_of(const at::Tensor& rois, const at::Tensor& levels) {
  return {rois.const_data_ptr<float>(), levels.const_data_ptr<std::int64_t>(),
          static_cast<int>(rois.size(0))};
}

/// T: the kernels' type, const where maps are only read. `maps` are channels-last.
template <typename T>
cuda::Pyramid<T> pyramid_of(at::TensorList maps, double scale) {
  if (maps.size() > cuda::kMaxLevels)
    throw std::invalid_argument("roi_align: at most 6 maps on a GPU");
  cuda::Pyramid<T> pyramid{};
  for (const auto& map : maps) {
    const auto level = static_cast<std::size_t>(pyramid.levels++);
    pyramid.maps[level] = static_cast<T*>(map.data_ptr());
    pyramid.heights[level] = static_cast<int>(map.size(2));
    pyramid.widths[level] = static_cast<int>(map.size(3));
    pyramid.scales[level] = static_cast<float>(scale);
    scale /= 2;
  }
  pyramid.images = static_cast<int>(maps[0].size(0));
  pyramid.channels = static_cast<int>(maps[0].size(1));
  return pyramid;
}

/// Calls `work` with a value of the kernels' type for `type`.
template <typename F>
void with_type(at::ScalarType type, F work) {
  switch (type) {
    case at::kFloat:
      return work(float{});
    case at::kHalf:
      return work(__half{});
    case at::kBFloat16:
      return work(__nv_bfloat16{});
    default:
      throw std::invalid_argument("roi_align: a GPU takes float, half and bfloat16 maps");
  }
}

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

at::Tensor roi_align(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                     std::int64_t height, std::int64_t width, double scale,
                     std::int64_t sampling_ratio, bool aligned) {
  const c10::cuda::CUDAGuard guard(rois.device());
  std::vector<at::Tensor> memory;
  for (const auto& map : maps) memory.push_back(map.contiguous(kChannelsLast));
  auto output =
      at::empty({rois.size(0), maps[0].size(1), height, width}, maps[0].options(), kChannelsLast);
  const auto regions = plain(rois), of_levels = levels.contiguous();
  with_type(maps[0].scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    cuda::roi_align_forward<T>(pyramid_of<const T>(memory, scale), regions_of(regions, of_levels),
                               switches_of(height, width, sampling_ratio, aligned),
                               static_cast<T*>(output.mutable_data_ptr()), stream_of(rois));
  });
  return output;
}

std::vector<at::Tensor> roi_align_backward(const at::Tensor& grad_output, const at::Tensor& rois,
                                           const at::Tensor& levels, at::IntArrayRef sizes,
                                           double scale, std::int64_t sampling_ratio,
                                           bool aligned) {
  const c10::cuda::CUDAGuard guard(rois.device());
  std::vector<at::Tensor> gradients;
  for (std::size_t i = 0; i < sizes.size(); i += 4)
    gradients.push_back(at::empty(sizes.slice(i, 4), grad_output.options(), kChannelsLast));
  const auto cells = grad_output.contiguous(kChannelsLast);
  const auto regions = plain(rois), of_levels = levels.contiguous();
  with_type(cells.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    cuda::roi_align_backward<T>(static_cast<const T*>(cells.const_data_ptr()),
                                regions_of(regions, of_levels),
                                switches_of(cells.size(2), cells.size(3), sampling_ratio, aligned),
                                pyramid_of<T>(gradients, scale), stream_of(rois));
  });
  return gradients;
}

std::tuple<at::Tensor, at::Tensor> match(const at::Tensor& truth, const at::Tensor& boxes,
                                         double low, double high, bool low_quality, double offset) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const auto truths = plain(truth), candidates = plain(boxes);
  auto highest = at::empty({truth.size(0)}, truths.options());
  auto best = at::empty({boxes.size(0)}, boxes.options().dtype(at::kLong)),
       label = at::empty({boxes.size(0)}, boxes.options().dtype(at::kChar));
  cuda::match(
      truths.const_data_ptr<float>(), truths.size(0), candidates.const_data_ptr<float>(),
      candidates.size(0),
      {static_cast<float>(low), static_cast<float>(high), static_cast<float>(offset), low_quality},
      highest.mutable_data_ptr<float>(), best.mutable_data_ptr<std::int64_t>(),
      label.mutable_data_ptr<std::int8_t>(), stream_of(boxes));
  return {best, label};
}

at::Tensor mask_targets(const at::Tensor& points, const at::Tensor& polygon_begins,
                        const at::Tensor& object_begins, const at::Tensor& boxes,
                        std::int64_t size) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const auto count = boxes.size(0);
  const auto corners = plain(boxes);
  auto targets = at::empty({count, size, size}, corners.options());
  cuda::mask_targets(
      {points.const_data_ptr<double>(), polygon_begins.const_data_ptr<std::int64_t>(),
       object_begins.const_data_ptr<std::int64_t>()},
      corners.const_data_ptr<float>(), count, static_cast<int>(size),
      targets.mutable_data_ptr<float>(), stream_of(boxes));
  return targets;
}

TORCH_LIBRARY_IMPL(millrace, CUDA, library) {
  library.impl("nms", nms);
  library.impl("proposals", proposals);
  library.impl("roi_align", roi_align);
  library.impl("roi_align_backward", roi_align_backward);
  library.impl("match", match);
  library.impl("mask_targets", mask_targets);
}

}  // namespace
}  // namespace millrace
