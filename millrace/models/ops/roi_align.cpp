#include "millrace/models/ops/roi_align.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <stdexcept>
#include <type_traits>
#include <vector>

#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/roi_align_kernel.h"

namespace millrace {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

template <typename T>
constexpr auto kType = c10::CppTypeToScalarType<T>::value;

template <typename Value>
FeatureMap<Value> as_map(const at::Tensor& tensor, Value* data, double scale) {
  return {data,           tensor.size(0), tensor.size(1),
          tensor.size(2), tensor.size(3), static_cast<std::remove_const_t<Value>>(scale)};
}

template <typename T>
at::Tensor pool(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                const RoiAlignOptions& options) {
  const at::Tensor regions = rois.to(kType<T>).contiguous(), own_levels = levels.contiguous();
  std::vector<at::Tensor> memory;
  std::vector<FeatureMap<const T>> features;
  double scale = options.scale;
  for (const auto& map : maps) {
    memory.push_back(map.to(kType<T>).contiguous(kChannelsLast));
    features.push_back(as_map(map, memory.back().const_data_ptr<T>(), scale));
    scale /= 2;
  }
  at::Tensor output = at::empty({regions.size(0), maps[0].size(1), options.height, options.width},
                                memory[0].options(), kChannelsLast);
  roi_align_forward<T>(features, regions.const_data_ptr<T>(),
                       own_levels.const_data_ptr<std::int64_t>(), regions.size(0), options,
                       output.mutable_data_ptr<T>());
  return output.to(maps[0].scalar_type());
}

/// `sizes`: the four of each map.
template <typename T>
std::vector<at::Tensor> spread(const at::Tensor& grad_output, const at::Tensor& rois,
                               const at::Tensor& levels, at::IntArrayRef sizes,
                               const RoiAlignOptions& options) {
  const at::Tensor regions = rois.to(kType<T>).contiguous(), own_levels = levels.contiguous();
  const at::Tensor cells = grad_output.to(kType<T>).contiguous(kChannelsLast);
  std::vector<at::Tensor> gradients;
  std::vector<FeatureMap<T>> features;
  double scale = options.scale;
  for (std::size_t i = 0; i < sizes.size(); i += 4) {
    gradients.push_back(at::empty(sizes.slice(i, 4), cells.options(), kChannelsLast).zero_());
    features.push_back(as_map(gradients.back(), gradients.back().mutable_data_ptr<T>(), scale));
    scale /= 2;
  }
  roi_align_backward<T>(cells.const_data_ptr<T>(), regions.const_data_ptr<T>(),
                        own_levels.const_data_ptr<std::int64_t>(), regions.size(0), options,
                        features);
  for (auto& gradient : gradients) gradient = gradient.to(grad_output.scalar_type());
  return gradients;
}

at::Tensor roi_align_on_cpu(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                            std::int64_t height, std::int64_t width, double scale,
                            std::int64_t sampling_ratio, bool aligned) {
  const RoiAlignOptions options{height, width, scale, sampling_ratio, aligned};
  return maps[0].scalar_type() == at::kDouble ? pool<double>(maps, rois, levels, options)
                                              : pool<float>(maps, rois, levels, options);
}

std::vector<at::Tensor> roi_align_backward_on_cpu(const at::Tensor& grad_output,
                                                  const at::Tensor& rois, const at::Tensor& levels,
                                                  at::IntArrayRef sizes, double scale,
                                                  std::int64_t sampling_ratio, bool aligned) {
  const RoiAlignOptions options{grad_output.size(2), grad_output.size(3), scale, sampling_ratio,
                                aligned};
  return grad_output.scalar_type() == at::kDouble
             ? spread<double>(grad_output, rois, levels, sizes, options)
             : spread<float>(grad_output, rois, levels, sizes, options);
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) {
  library.impl("roi_align", roi_align_on_cpu);
  library.impl("roi_align_backward", roi_align_backward_on_cpu);
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
                            const RoiAlignOptions& options) {
    context->save_for_backward({rois, levels});
    std::vector<std::int64_t> sizes;
    for (const auto& map : maps) sizes.insert(sizes.end(), map.sizes().begin(), map.sizes().end());
    auto& saved = context->saved_data;
    saved["sizes"] = sizes;
    saved["scale"] = options.scale;
    saved["sampling_ratio"] = options.sampling_ratio;
    saved["aligned"] = options.aligned;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return dispatch_roi_align(maps, rois, levels, options);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto tensors = context->get_saved_variables();
    auto& saved = context->saved_data;
    static const auto op =
        dispatched<decltype(roi_align_backward_on_cpu)>("millrace::roi_align_backward");
    auto result = op.call(grads[0], tensors[0], tensors[1], saved["sizes"].toIntVector(),
                          saved["scale"].toDouble(), saved["sampling_ratio"].toInt(),
                          saved["aligned"].toBool());
    result.resize(result.size() + 3);  // regions, levels and options have none
    return result;
  }
};

at::Tensor roi_align_with_gradient(at::TensorList maps, const at::Tensor& rois,
                                   const at::Tensor& levels, std::int64_t height,
                                   std::int64_t width, double scale, std::int64_t sampling_ratio,
                                   bool aligned) {
  return RoiAlign::apply(maps, rois.detach(), levels,
                         RoiAlignOptions{height, width, scale, sampling_ratio, aligned});
}

TORCH_LIBRARY_IMPL(millrace, Autograd, library) {
  library.impl("roi_align", roi_align_with_gradient);
}

void check_maps(at::TensorList maps) {
  if (maps.empty()) throw std::invalid_argument("roi_align: no maps");
  for (const auto& map : maps) {
    if (map.dim() != 4 || map.numel() == 0)
      throw std::invalid_argument("roi_align: maps must be (N, C, H, W), not empty");
    if (map.size(0) != maps[0].size(0) || map.size(1) != maps[0].size(1) ||
        map.scalar_type() != maps[0].scalar_type())
      throw std::invalid_argument("roi_align: maps differ in images, channels or type");
  }
}

}  // namespace

at::Tensor roi_align(at::TensorList maps, const at::Tensor& rois, const at::Tensor& levels,
                     const RoiAlignOptions& options) {
  check_maps(maps);
  if (!at::isFloatingType(maps[0].scalar_type()))
    throw std::invalid_argument("roi_align: maps must be of floating point");
  if (rois.dim() != 2 || rois.size(1) != 5)
    throw std::invalid_argument("roi_align: rois must be (R, 5)");
  if (levels.defined() &&
      (levels.dim() != 1 || levels.size(0) != rois.size(0) || levels.scalar_type() != at::kLong))
    throw std::invalid_argument("roi_align: levels must be (R) int64");
  if (options.height < 1 || options.width < 1)
    throw std::invalid_argument("roi_align: a region has at least one cell");
  const auto first = [&] { return at::zeros({rois.size(0)}, rois.options().dtype(at::kLong)); };
  return dispatch_roi_align(maps, rois, levels.defined() ? levels : first(), options);
}

}  // namespace millrace
