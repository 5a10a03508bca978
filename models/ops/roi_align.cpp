#include "millrace/models/ops/roi_align.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "millrace/models/ops/axis_taps.h"
#include "millrace/models/ops/cpu/channels_last.h"
#include "millrace/models/ops/cpu/simd.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/map_gradients.h"

namespace millrace {
namespace {

template <typename T>
constexpr auto kType = c10::CppTypeToScalarType<T>::value;

/// A channels-last feature map. Value is float or double, const if the map is only read.
template <typename Value>
struct FeatureMap {
  Value* data;
  std::int64_t images, channels, height, width;
  std::remove_const_t<Value> scale;  // map pixels per image pixel

  FeatureMap(const at::Tensor& map, Value* values, double pixels_per_pixel)
      : data(values),
        images(map.size(0)),
        channels(map.size(1)),
        height(map.size(2)),
        width(map.size(3)),
        scale(static_cast<std::remove_const_t<Value>>(pixels_per_pixel)) {}

  /// Returns the map of the region's image.
  template <typename T>
  Value* of(const T* roi) const {
    return data + static_cast<std::int64_t>(roi[0]) * height * width * channels;
  }
};

/// The cells of a region and the taps of each on a map.
template <typename T>
struct RegionTaps {
  AxisTaps<T> rows, columns;
  std::int64_t height, width;     // cells
  std::int64_t stride, channels;  // map elements from row to row; from pixel to pixel

  template <typename Value>
  void set(const T* roi, const FeatureMap<Value>& map, const RoiAlignOptions& options) {
    height = options.height, width = options.width;
    stride = map.width * map.channels, channels = map.channels;
    rows.set(roi[2] * map.scale, roi[4] * map.scale, map.height,
             {height, options.sampling_ratio, options.aligned});
    columns.set(roi[1] * map.scale, roi[3] * map.scale, map.width,
                {width, options.sampling_ratio, options.aligned});
  }
};

/// Calls `pixel(offset, weight)` for every tap of a cell.
template <typename T, typename F>
[[gnu::always_inline]] inline void each_tap(const RegionTaps<T>& region, std::int64_t y,
                                            std::int64_t x, F pixel) {
  for (const auto& row : region.rows[y])
    for (const auto& column : region.columns[x])
      pixel(row.index * region.stride + column.index * region.channels, row.weight * column.weight);
}

constexpr std::int64_t kVectors = 8;  // vectors in registers during a sum over taps

template <typename T>
struct Lanes {
  using Vector [[gnu::vector_size(32), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  static constexpr auto kCount = static_cast<std::int64_t>(sizeof(Vector) / sizeof(T));
  static constexpr auto kBlock = kVectors * kCount;
};

/// Pools one cell, all channels.
template <typename T>
[[gnu::always_inline]] inline void gather_cell(const T* map, const RegionTaps<T>& region,
                                               std::int64_t y, std::int64_t x, T* output) {
  using Vector = typename Lanes<T>::Vector;
  constexpr auto kCount = Lanes<T>::kCount, kBlock = Lanes<T>::kBlock;
  const auto channels = region.channels;
  std::int64_t c = 0;
  for (; c + kBlock <= channels; c += kBlock) {
    Vector sum[kVectors] = {};
    each_tap(region, y, x, [&](std::int64_t offset, T weight) {
      const T* from = map + offset + c;
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v)
        sum[v] += weight * *reinterpret_cast<const Vector*>(from + v * kCount);
    });
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v)
      *reinterpret_cast<Vector*>(output + c + v * kCount) = sum[v];
  }
  if (c == channels) return;
  std::fill(output + c, output + channels, T{0});
  each_tap(region, y, x, [&](std::int64_t offset, T weight) {
    for (auto i = c; i < channels; ++i) output[i] += weight * map[offset + i];
  });
}

template <typename T>
[[gnu::always_inline]] inline void gather_region(const T* map, const RegionTaps<T>& region,
                                                 T* output) {
  for (std::int64_t y = 0; y < region.height; ++y)
    for (std::int64_t x = 0; x < region.width; ++x, output += region.channels)
      gather_cell(map, region, y, x, output);
}

MILLRACE_SIMD void gather(const float* map, const RegionTaps<float>& region, float* output) {
  gather_region(map, region, output);
}

MILLRACE_SIMD void gather(const double* map, const RegionTaps<double>& region, double* output) {
  gather_region(map, region, output);
}

/// Adds `count` channels of the cells, which are `step` numbers apart, to the map. `cells` and
/// `map` point to the first of these channels.
template <typename T>
[[gnu::always_inline]] inline void scatter_region(const T* cells, std::int64_t step,
                                                  const RegionTaps<T>& region, std::int64_t count,
                                                  T* map) {
  for (std::int64_t y = 0; y < region.height; ++y)
    for (std::int64_t x = 0; x < region.width; ++x, cells += step)
      each_tap(region, y, x, [&](std::int64_t offset, T weight) {
        T* const to = map + offset;
        for (std::int64_t i = 0; i < count; ++i) to[i] += weight * cells[i];
      });
}

MILLRACE_SIMD void scatter(const float* cells, std::int64_t step, const RegionTaps<float>& region,
                           std::int64_t count, float* map) {
  scatter_region(cells, step, region, count, map);
}

MILLRACE_SIMD void scatter(const double* cells, std::int64_t step, const RegionTaps<double>& region,
                           std::int64_t count, double* map) {
  scatter_region(cells, step, region, count, map);
}

/// Transposes (rows, columns) to (columns, rows).
template <typename T>
void transpose(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      to[column * rows + row] = from[row * columns + column];
}

template <typename Value, typename T>
void check_regions(const std::vector<FeatureMap<Value>>& maps, const T* rois,
                   const std::int64_t* levels, std::int64_t count) {
  for (std::int64_t r = 0; r < count; ++r) {
    if (const T image = rois[5 * r]; !(image >= 0 && image < static_cast<T>(maps[0].images)))
      throw std::invalid_argument("roi_align: image index " + std::to_string(image) +
                                  " is out of range for a batch of " +
                                  std::to_string(maps[0].images));
    if (levels[r] < 0 || levels[r] >= std::ssize(maps))
      throw std::invalid_argument("roi_align: level index " + std::to_string(levels[r]) +
                                  " is out of range for " + std::to_string(maps.size()) + " maps");
  }
}

template <typename T>
at::Tensor pool(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                const RoiAlignOptions& options) {
  const at::Tensor regions = rois.to(kType<T>).contiguous(), own_levels = levels.contiguous();
  const auto* roi = regions.const_data_ptr<T>();
  const auto* level = own_levels.const_data_ptr<std::int64_t>();
  std::vector<at::Tensor> memory;
  std::vector<FeatureMap<const T>> features;
  double scale = options.scale;
  for (const auto& map : maps) {
    memory.push_back(map.to(kType<T>).contiguous(kChannelsLast));
    features.emplace_back(map, memory.back().const_data_ptr<T>(), scale);
    scale /= 2;
  }
  const auto count = regions.size(0);
  check_regions(features, roi, level, count);
  at::Tensor output = at::empty({count, maps[0].size(1), options.height, options.width},
                                memory[0].options(), kChannelsLast);
  auto* const out = output.mutable_data_ptr<T>();
  const auto numbers = options.height * options.width * maps[0].size(1);  // elements per region
  at::parallel_for(0, count, 1, [&](std::int64_t begin, std::int64_t end) {
    RegionTaps<T> region;
    for (auto r = begin; r < end; ++r) {
      const auto& map = features[static_cast<std::size_t>(level[r])];
      region.set(roi + 5 * r, map, options);
      gather(map.of(roi + 5 * r), region, out + r * numbers);
    }
  });
  return output.to(maps[0].scalar_type());
}

/// Adds the gradients of regions to those of maps, of type T and channels last. Threads divide the
/// channels and process regions in order, so sums do not depend on the number of threads.
template <typename T>
void spread(const at::Tensor& grad_output, const at::Tensor& rois, const at::Tensor& levels,
            at::TensorList gradients, const RoiAlignOptions& options) {
  const at::Tensor regions = rois.to(kType<T>).contiguous(), own_levels = levels.contiguous();
  // The gradient stays channels first, as a linear layer's backward pass gives it: a copy would be
  // the largest tensor of a step.
  const auto typed = grad_output.to(kType<T>);
  const bool channels_first = typed.is_contiguous() && !typed.is_contiguous(kChannelsLast);
  const at::Tensor memory = channels_first ? typed : typed.contiguous(kChannelsLast);
  const auto* roi = regions.const_data_ptr<T>();
  const auto* level = own_levels.const_data_ptr<std::int64_t>();
  const auto* cells = memory.const_data_ptr<T>();
  std::vector<FeatureMap<T>> features;
  double scale = options.scale;
  for (const auto& gradient : gradients) {
    features.emplace_back(gradient, gradient.mutable_data_ptr<T>(), scale);
    scale /= 2;
  }
  const auto count = regions.size(0);
  check_regions(features, roi, level, count);
  const auto map_of = [&](std::int64_t r) -> const FeatureMap<T>& {
    return features[static_cast<std::size_t>(level[r])];
  };
  std::vector<RegionTaps<T>> taps(static_cast<std::size_t>(count));
  at::parallel_for(0, count, 16, [&](std::int64_t begin, std::int64_t end) {
    for (auto r = begin; r < end; ++r)
      taps[static_cast<std::size_t>(r)].set(roi + 5 * r, map_of(r), options);
  });

  const auto channels = features[0].channels;
  const auto of_channel = options.height * options.width;
  constexpr auto kLine =
      static_cast<std::int64_t>(64 / sizeof(T));  // a cache line, written by one thread
  at::parallel_for(0, (channels + kLine - 1) / kLine, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto first = begin * kLine, share = std::min(end * kLine, channels) - first;
    std::vector<T> turned(static_cast<std::size_t>(channels_first ? share * of_channel : 0));
    for (std::int64_t r = 0; r < count; ++r) {
      const auto* own = cells + r * channels * of_channel;
      if (channels_first)
        transpose(own + first * of_channel, share, of_channel, turned.data()), own = turned.data();
      else
        own += first;
      scatter(own, channels_first ? share : channels, taps[static_cast<std::size_t>(r)], share,
              map_of(r).of(roi + 5 * r) + first);
    }
  });
}

at::Tensor roi_align_on_cpu(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                            std::int64_t height, std::int64_t width, double scale,
                            std::int64_t sampling_ratio, bool aligned) {
  const RoiAlignOptions options{height, width, scale, sampling_ratio, aligned};
  return maps[0].scalar_type() == at::kDouble ? pool<double>(maps, rois, levels, options)
                                              : pool<float>(maps, rois, levels, options);
}

void add_gradients_on_cpu(at::TensorList gradients, const at::Tensor& grad_output,
                          const at::Tensor& rois, const at::Tensor& levels, double scale,
                          std::int64_t sampling_ratio, bool aligned) {
  const RoiAlignOptions options{grad_output.size(2), grad_output.size(3), scale, sampling_ratio,
                                aligned};
  if (gradients[0].scalar_type() == at::kDouble)
    spread<double>(grad_output, rois, levels, gradients, options);
  else
    spread<float>(grad_output, rois, levels, gradients, options);
}

/// Returns zeros of a map's size to add gradients to; float for narrower types.
at::Tensor no_gradient(at::IntArrayRef size, const at::TensorOptions& options) {
  const auto type = options.dtype() == at::kDouble ? at::kDouble : at::kFloat;
  return at::empty(size, options.dtype(type), kChannelsLast).zero_();
}

/// `sizes`: the four sizes of each map, flattened.
std::vector<at::Tensor> roi_align_backward_on_cpu(const at::Tensor& grad_output,
                                                  const at::Tensor& rois, const at::Tensor& levels,
                                                  at::IntArrayRef sizes, double scale,
                                                  std::int64_t sampling_ratio, bool aligned) {
  std::vector<at::Tensor> gradients;
  for (std::size_t i = 0; i < sizes.size(); i += 4)
    gradients.push_back(no_gradient(sizes.slice(i, 4), grad_output.options()));
  add_gradients_on_cpu(gradients, grad_output, rois, levels, scale, sampling_ratio, aligned);
  for (auto& gradient : gradients) gradient = gradient.to(grad_output.scalar_type());
  return gradients;
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) {
  library.impl("roi_align", roi_align_on_cpu);
  library.impl("roi_align_backward", roi_align_backward_on_cpu);
  library.impl("roi_align_add_gradients_", add_gradients_on_cpu);
}

at::Tensor dispatch_roi_align(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                              const RoiAlignOptions& options) {
  static const auto op = dispatched<decltype(roi_align_on_cpu)>("millrace::roi_align");
  return op.call(maps, rois, levels, options.height, options.width, options.scale,
                 options.sampling_ratio, options.aligned);
}

class RoiAlign : public torch::autograd::Function<RoiAlign> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::TensorList maps,
                            const at::Tensor& rois, const at::Tensor& levels,
                            const RoiAlignOptions& options,
                            const c10::intrusive_ptr<MapGradients>& shared) {
    context->save_for_backward({rois, levels});
    std::vector<std::int64_t> sizes;
    for (const auto& map : maps) sizes.insert(sizes.end(), map.sizes().begin(), map.sizes().end());
    auto& saved = context->saved_data;
    saved["sizes"] = sizes;
    saved["scale"] = options.scale;
    saved["sampling_ratio"] = options.sampling_ratio;
    saved["aligned"] = options.aligned;
    if (shared) saved["shared"] = c10::IValue::make_capsule(shared);
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return dispatch_roi_align(maps, rois, levels, options);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto tensors = context->get_saved_variables();
    auto& saved = context->saved_data;
    const auto sizes = saved["sizes"].toIntVector();
    const auto scale = saved["scale"].toDouble();
    const auto sampling_ratio = saved["sampling_ratio"].toInt();
    const bool aligned = saved["aligned"].toBool();
    torch::autograd::variable_list result;
    if (const auto shared = saved.find("shared"); shared != saved.end()) {
      static const auto add =
          dispatched<decltype(add_gradients_on_cpu)>("millrace::roi_align_add_gradients_");
      auto& all =
          c10::static_intrusive_pointer_cast<MapGradients>(shared->second.toCapsule())->sums;
      const auto count = sizes.size() / 4;
      for (std::size_t i = 0; i < count; ++i)
        if (!all[i].defined())
          all[i] = no_gradient(at::IntArrayRef(sizes).slice(4 * i, 4), grads[0].options());
      add.call(at::TensorList(all).slice(0, count), grads[0], tensors[0], tensors[1], scale,
               sampling_ratio, aligned);
      result.resize(count);
    } else {
      static const auto op =
          dispatched<decltype(roi_align_backward_on_cpu)>("millrace::roi_align_backward");
      result = op.call(grads[0], tensors[0], tensors[1], sizes, scale, sampling_ratio, aligned);
    }
    result.resize(result.size() + 4);  // regions, levels, options and sums have no gradient
    return result;
  }
};

at::Tensor roi_align_with_gradient(at::TensorList maps, const at::Tensor& rois,
                                   const at::Tensor& levels, std::int64_t height,
                                   std::int64_t width, double scale, std::int64_t sampling_ratio,
                                   bool aligned) {
  return RoiAlign::apply(maps, rois.detach(), levels,
                         RoiAlignOptions{height, width, scale, sampling_ratio, aligned},
                         shared_gradients(maps));
}

TORCH_LIBRARY_IMPL(millrace, Autograd, library) {
  library.impl("roi_align", roi_align_with_gradient);
}

}  // namespace

at::Tensor roi_align(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                     const RoiAlignOptions& options) {
  if (maps.empty()) throw std::invalid_argument("roi_align: no maps");
  for (const auto& map : maps) {
    if (map.dim() != 4 || map.numel() == 0)
      throw std::invalid_argument("roi_align: maps must be (N, C, H, W), not empty");
    if (map.size(0) != maps[0].size(0) || map.size(1) != maps[0].size(1) ||
        map.scalar_type() != maps[0].scalar_type())
      throw std::invalid_argument("roi_align: maps differ in images, channels or type");
  }
  if (!at::isFloatingType(maps[0].scalar_type()))
    throw std::invalid_argument("roi_align: maps must have a floating-point type");
  if (rois.dim() != 2 || rois.size(1) != 5)
    throw std::invalid_argument("roi_align: rois must be (R, 5)");
  if (levels.defined() &&
      (levels.dim() != 1 || levels.size(0) != rois.size(0) || levels.scalar_type() != at::kLong))
    throw std::invalid_argument("roi_align: levels must be (R) int64");
  if (options.height < 1 || options.width < 1)
    throw std::invalid_argument("roi_align: regions must have at least one cell");
  const auto first = [&] { return at::zeros({rois.size(0)}, rois.options().dtype(at::kLong)); };
  return dispatch_roi_align(maps, rois, levels.defined() ? levels : first(), options);
}

}  // namespace millrace
