// Implements the operators of millrace/models/ops/operators.cpp on a GPU: unpacks tensors and calls
// the kernels.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <torch/library.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "millrace/models/ops/suppressor.h"
#include "millrace/models/ops/upload.h"
#include "millrace/plugins/cuda/boxes.h"
#include "millrace/plugins/cuda/finish.h"
#include "millrace/plugins/cuda/focal_loss.h"
#include "millrace/plugins/cuda/mask_targets.h"
#include "millrace/plugins/cuda/normalize.h"
#include "millrace/plugins/cuda/roi_align.h"
#include "millrace/plugins/cuda/sampling.h"

namespace millrace {
namespace {

cuda::Stream stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

at::Tensor contiguous_float(const at::Tensor& values) { return values.to(at::kFloat).contiguous(); }

/// Returns the boxes that NMS keeps, (count) bool; see cuda::nms.
at::Tensor nms_mask(const at::Tensor& boxes, const at::Tensor& valid, const at::Tensor& begins,
                    std::int64_t most, double threshold, double offset) {
  const auto count = boxes.size(0);
  const auto bytes = static_cast<std::int64_t>(cuda::nms_scratch_bytes(count, most));
  auto scratch = at::empty({bytes}, boxes.options().dtype(at::kByte));
  auto keep = at::empty({count}, boxes.options().dtype(at::kBool));
  cuda::nms(boxes.const_data_ptr<float>(),
            reinterpret_cast<const std::uint8_t*>(valid.const_data_ptr<bool>()),
            begins.const_data_ptr<std::int64_t>(), begins.size(0) - 1, count, most,
            rounded_down(threshold), static_cast<float>(offset), scratch.mutable_data_ptr(),
            reinterpret_cast<std::uint8_t*>(keep.mutable_data_ptr<bool>()), stream_of(boxes));
  return keep;
}

at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
               double threshold, double offset) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const auto count = scores.size(0);
  if (count == 0) return at::empty({0}, scores.options().dtype(at::kLong));
  const auto by_score = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  // by_group: indices into by_score
  const auto [sorted, by_group] = groups.index_select(0, by_score).sort(/*stable=*/true, 0, false);
  const auto sizes = std::get<2>(at::unique_consecutive(sorted, false, true));
  const auto begins = at::cat({at::zeros({1}, sizes.options()), sizes.cumsum(0)});
  const auto order = by_score.index_select(0, by_group);
  const auto keep = nms_mask(contiguous_float(boxes.index_select(0, order)),
                             at::ones({count}, boxes.options().dtype(at::kBool)), begins,
                             sizes.max().item<std::int64_t>(), threshold, offset);
  auto by_rank = at::empty_like(keep);
  by_rank.index_copy_(0, by_group, keep);
  return by_score.masked_select(by_rank);
}

/// Returns a key (N, M) for each of values (N, M); kNoKey where `keep` (N, M) is false. An
/// undefined `keep` keeps all.
at::Tensor keys_of(const at::Tensor& values, const at::Tensor& keep) {
  auto keys = at::empty(values.sizes(), values.options().dtype(at::kLong));
  cuda::make_keys(
      values.const_data_ptr<float>(),
      keep.defined() ? reinterpret_cast<const std::uint8_t*>(keep.const_data_ptr<bool>()) : nullptr,
      values.size(0), values.size(1), keys.mutable_data_ptr<std::int64_t>(), stream_of(values));
  return keys;
}

/// Returns the best anchors of each level, (N, K) over all levels: their logits, or probabilities
/// if `by_probability`, and their indices.
std::pair<at::Tensor, at::Tensor> best_anchors(const at::Tensor& logits,
                                               at::IntArrayRef level_counts, std::int64_t before,
                                               bool by_probability) {
  const auto keys = keys_of(logits, {});
  std::vector<at::Tensor> best;
  std::int64_t first = 0;
  for (const auto count : level_counts) {
    best.push_back(std::get<0>(keys.narrow(1, first, count).topk(std::min(count, before))));
    first += count;
  }
  const auto chosen = at::cat(best, 1);
  auto rank = at::empty(chosen.sizes(), logits.options());
  auto index = at::empty_like(chosen);
  cuda::split_keys(chosen.const_data_ptr<std::int64_t>(), chosen.numel(),
                   rank.mutable_data_ptr<float>(), index.mutable_data_ptr<std::int64_t>(),
                   stream_of(logits));
  if (!by_probability) return {rank, index};
  // Rounding may create ties and swap neighbours; values that are not finite stay last.
  std::vector<at::Tensor> ranks, indices;
  first = 0;
  for (const auto count : level_counts) {
    const auto k = std::min(count, before);
    const auto own = rank.narrow(1, first, k);
    const auto [sorted, order] =
        at::where(at::isfinite(own), at::sigmoid(own), own).sort(/*stable=*/true, 1, true);
    ranks.push_back(sorted);
    indices.push_back(index.narrow(1, first, k).gather(1, order));
    first += k;
  }
  return {at::cat(ranks, 1), at::cat(indices, 1)};
}

std::tuple<at::Tensor, at::Tensor> proposals(const at::Tensor& logits, const at::Tensor& deltas,
                                             const at::Tensor& anchors,
                                             at::IntArrayRef level_counts,
                                             at::ArrayRef<double> sizes, std::int64_t before,
                                             std::int64_t after, double threshold, double min_side,
                                             bool by_probability, at::ArrayRef<double> weights,
                                             double max_log_scale, double offset) {
  const c10::cuda::CUDAGuard guard(logits.device());
  const auto images = logits.size(0);
  const auto all_logits = contiguous_float(logits), all_deltas = contiguous_float(deltas),
             all_anchors = contiguous_float(anchors);
  const auto [rank, index] = best_anchors(all_logits, level_counts, before, by_probability);
  const auto each = rank.size(1), total = images * each;

  // The host's data is copied in one transfer, which the host does not wait for.
  std::int64_t most = 0;
  std::vector<std::int64_t> begins;
  for (std::int64_t image = 0; image < images; ++image) {
    auto begin = image * each;
    for (const auto count : level_counts) {
      const auto k = std::min(count, before);
      begins.push_back(begin);
      begin += k;
      most = std::max(most, k);
    }
  }
  begins.push_back(total);
  const auto there =
      uploaded({at::tensor(sizes, at::kFloat), at::tensor(begins, at::kLong)}, logits.device());

  auto boxes = at::empty({total, 4}, all_logits.options());
  auto valid = at::empty({total}, all_logits.options().dtype(at::kBool));
  cuda::BoxDecoding coding{{}, static_cast<float>(max_log_scale), static_cast<float>(offset)};
  std::copy(weights.begin(), weights.end(), coding.weights);
  cuda::decode_chosen({all_anchors.const_data_ptr<float>(), all_deltas.const_data_ptr<float>(),
                       rank.const_data_ptr<float>(), there[0].const_data_ptr<float>(),
                       index.const_data_ptr<std::int64_t>(), total, each, all_anchors.size(0)},
                      coding, static_cast<float>(min_side), boxes.mutable_data_ptr<float>(),
                      reinterpret_cast<std::uint8_t*>(valid.mutable_data_ptr<bool>()),
                      stream_of(logits));
  const auto keep = nms_mask(boxes, valid, there[1], most, threshold, offset);

  const auto kept = std::min(each, after);
  const auto best = std::get<0>(keys_of(rank, keep).topk(kept)).contiguous();
  auto result = at::empty({images, kept, 4}, all_logits.options());
  auto counts = at::zeros({images}, index.options());
  cuda::gather_boxes(boxes.const_data_ptr<float>(), best.const_data_ptr<std::int64_t>(), images,
                     each, kept, result.mutable_data_ptr<float>(),
                     counts.mutable_data_ptr<std::int64_t>(), stream_of(logits));
  return {result, counts};
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

/// Describes channels-last `maps` to the kernels. T is the kernels' type, const if the maps are
/// only read.
template <typename T>
cuda::Pyramid<T> pyramid_of(at::TensorList maps, double scale) {
  if (maps.size() > cuda::kMaxLevels)
    throw std::invalid_argument("roi_align: at most 6 feature maps on a GPU");
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

/// Calls `work` with a value of the kernels' type for tensor type `type`.
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
      throw std::invalid_argument("a GPU supports only float, half and bfloat16");
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
  const auto regions = contiguous_float(rois), of_levels = levels.contiguous();
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
  const auto regions = contiguous_float(rois), of_levels = levels.contiguous();
  with_type(cells.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    cuda::roi_align_backward<T>(static_cast<const T*>(cells.const_data_ptr()),
                                regions_of(regions, of_levels),
                                switches_of(cells.size(2), cells.size(3), sampling_ratio, aligned),
                                pyramid_of<T>(gradients, scale), stream_of(rois));
  });
  return gradients;
}

std::tuple<at::Tensor, at::Tensor> match(const at::Tensor& truth, const at::Tensor& begins,
                                         const at::Tensor& boxes, double low, double high,
                                         bool low_quality, double offset) {
  const c10::cuda::CUDAGuard guard(boxes.device());
  const auto images = boxes.size(0), count = boxes.size(1);
  const bool shared = images > 0 && boxes.stride(0) == 0;
  const auto truths = contiguous_float(truth),
             candidates = contiguous_float(shared ? boxes[0] : boxes);
  const auto first = begins.contiguous();
  auto highest = at::empty({truth.size(0)}, truths.options());
  auto best = at::empty({images, count}, boxes.options().dtype(at::kLong)),
       label = at::empty({images, count}, boxes.options().dtype(at::kChar));
  cuda::match(
      {truths.const_data_ptr<float>(), first.const_data_ptr<std::int64_t>(), truths.size(0),
       images},
      {candidates.const_data_ptr<float>(), count, shared},
      {static_cast<float>(low), static_cast<float>(high), static_cast<float>(offset), low_quality},
      highest.mutable_data_ptr<float>(), best.mutable_data_ptr<std::int64_t>(),
      label.mutable_data_ptr<std::int8_t>(), stream_of(boxes));
  return {best, label};
}

at::Tensor label_counts(const at::Tensor& label) {
  const c10::cuda::CUDAGuard guard(label.device());
  const auto labels = label.contiguous();
  const auto images = labels.size(0), count = labels.size(1);
  const auto chunks = (count + cuda::kLabelChunk - 1) / cuda::kLabelChunk;
  auto counts = at::empty({images, chunks, 2}, labels.options().dtype(at::kInt));
  cuda::count_labels(labels.const_data_ptr<std::int8_t>(), images, count,
                     counts.mutable_data_ptr<std::int32_t>(), stream_of(label));
  return counts;
}

at::Tensor ranked_labels(const at::Tensor& label, const at::Tensor& counts,
                         const at::Tensor& wanted) {
  const c10::cuda::CUDAGuard guard(label.device());
  const auto labels = label.contiguous(), asked = wanted.contiguous();
  auto places = at::empty({asked.size(0)}, asked.options());
  cuda::find_labels({labels.const_data_ptr<std::int8_t>(), counts.const_data_ptr<std::int32_t>(),
                     labels.size(1), counts.size(1)},
                    asked.const_data_ptr<std::int64_t>(), asked.size(0), asked.size(1),
                    places.mutable_data_ptr<std::int64_t>(), stream_of(label));
  return places;
}

at::Tensor mask_targets(const at::Tensor& points, const at::Tensor& polygon_begins,
                        const at::Tensor& object_begins, const at::Tensor& objects,
                        const at::Tensor& boxes, std::int64_t size) {
  if (size < 1 || size > cuda::kMostTargetCells)
    throw std::invalid_argument("mask_targets: size must be 1 to 256 on a GPU");
  const c10::cuda::CUDAGuard guard(boxes.device());
  const auto count = boxes.size(0);
  const auto corners = contiguous_float(boxes), which = objects.contiguous();
  auto targets = at::empty({count, size, size}, corners.options());
  cuda::mask_targets(
      {points.const_data_ptr<double>(), polygon_begins.const_data_ptr<std::int64_t>(),
       object_begins.const_data_ptr<std::int64_t>()},
      which.const_data_ptr<std::int64_t>(), corners.const_data_ptr<float>(), count,
      static_cast<int>(size), targets.mutable_data_ptr<float>(), stream_of(boxes));
  return targets;
}

/// Calls `work` with a value of the logits' type.
template <typename F>
void with_focal_type(const at::Tensor& logits, F work) {
  if (logits.scalar_type() == at::kDouble) return work(double{});
  return work(float{});
}

template <typename T>
cuda::FocalTable<T> focal_table(const at::Tensor& logits, const at::Tensor& classes) {
  return {logits.const_data_ptr<T>(), classes.const_data_ptr<std::int64_t>(), logits.size(0),
          logits.size(1)};
}

at::Tensor focal_loss(const at::Tensor& logits, const at::Tensor& classes, double alpha,
                      double gamma) {
  const c10::cuda::CUDAGuard guard(logits.device());
  const auto x = logits.contiguous(), own = classes.contiguous();
  auto loss = at::empty({}, x.options());
  auto scratch = at::empty({static_cast<std::int64_t>(cuda::focal_scratch_bytes(x.numel()))},
                           x.options().dtype(at::kByte));
  with_focal_type(x, [&](auto zero) {
    using T = decltype(zero);
    cuda::focal_loss<T>(focal_table<T>(x, own), {alpha, gamma}, scratch.mutable_data_ptr(),
                        loss.mutable_data_ptr<T>(), stream_of(logits));
  });
  return loss;
}

at::Tensor focal_loss_backward(const at::Tensor& factor, const at::Tensor& logits,
                               const at::Tensor& classes, double alpha, double gamma) {
  const c10::cuda::CUDAGuard guard(logits.device());
  const auto x = logits.contiguous(), own = classes.contiguous(), by = factor.to(x.scalar_type());
  auto gradient = at::empty_like(x);
  with_focal_type(x, [&](auto zero) {
    using T = decltype(zero);
    cuda::focal_loss_backward<T>(focal_table<T>(x, own), {alpha, gamma}, by.const_data_ptr<T>(),
                                 gradient.mutable_data_ptr<T>(), stream_of(logits));
  });
  return gradient;
}

at::Tensor normalize(const at::Tensor& pixels, at::IntArrayRef sizes, at::ArrayRef<double> mean,
                     at::ArrayRef<double> deviation, bool bgr, std::int64_t height,
                     std::int64_t width, at::ScalarType type) {
  const c10::cuda::CUDAGuard guard(pixels.device());
  const auto bytes = pixels.contiguous();
  const auto images = bytes.size(0);
  auto result = at::empty({images, 3, height, width}, bytes.options().dtype(type), kChannelsLast);
  cuda::PixelScaling scaling{{}, {}, bgr};
  for (std::size_t c = 0; c < 3; ++c) {
    scaling.mean[c] = static_cast<float>(mean[c]);
    scaling.deviation[c] = static_cast<float>(deviation[c]);
  }
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    cuda::normalize<T>(
        {bytes.const_data_ptr<std::uint8_t>(), bytes.size(1), bytes.size(2), height, width},
        sizes.data(), images, scaling, static_cast<T*>(result.mutable_data_ptr()),
        stream_of(pixels));
  });
  return result;
}

void finish_convolution(const at::Tensor& y, const std::optional<at::Tensor>& bias,
                        const std::optional<at::Tensor>& add, bool relu) {
  const c10::cuda::CUDAGuard guard(y.device());
  if (!y.is_contiguous(kChannelsLast) || (add && !add->is_contiguous(kChannelsLast)))
    throw std::invalid_argument("finish_convolution_: tensors must be channels-last");
  const auto own_bias = bias ? contiguous_float(*bias) : at::Tensor();
  with_type(y.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const cuda::Epilogue<T> epilogue{bias ? own_bias.const_data_ptr<float>() : nullptr,
                                     add ? static_cast<const T*>(add->const_data_ptr()) : nullptr,
                                     relu};
    cuda::finish<T>(static_cast<T*>(y.mutable_data_ptr()), y.numel(), y.size(1), epilogue,
                    stream_of(y));
  });
}

TORCH_LIBRARY_IMPL(millrace, CUDA, library) {
  library.impl("normalize", normalize);
  library.impl("finish_convolution_", finish_convolution);
  library.impl("nms", nms);
  library.impl("proposals", proposals);
  library.impl("match", match);
  library.impl("label_counts", label_counts);
  library.impl("ranked_labels", ranked_labels);
  library.impl("roi_align", roi_align);
  library.impl("roi_align_backward", roi_align_backward);
  library.impl("mask_targets", mask_targets);
  library.impl("focal_loss", focal_loss);
  library.impl("focal_loss_backward", focal_loss_backward);
}

}  // namespace
}  // namespace millrace
