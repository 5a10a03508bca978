#include "millrace/models/ops/roi_align.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>
#include <vector>

#include "millrace/models/ops/device_ops.h"
#include "millrace/models/ops/observed.h"
#include "millrace/models/ops/roi_align_kernel.h"

namespace millrace {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

/// Contiguous, of the maps' type, checked against the maps.
struct Regions {
  at::Tensor rois, levels;
};

template <typename T, typename Value>
FeatureMap<Value> as_map(const at::Tensor& tensor, Value* data, double scale) {
  return {data,           tensor.size(0), tensor.size(1),
          tensor.size(2), tensor.size(3), static_cast<T>(scale)};
}

template <typename T>
at::Tensor pool(at::TensorList maps, const Regions& regions, const RoiAlignOptions& options) {
  std::vector<at::Tensor> memory;
  std::vector<FeatureMap<const T>> features;
  double scale = options.scale;
  for (const auto& map : maps) {
    memory.push_back(map.contiguous(kChannelsLast));
    features.push_back(as_map<T>(map, memory.back().const_data_ptr<T>(), scale));
    scale /= 2;
  }
  auto output = at::empty({regions.rois.size(0), maps[0].size(1), options.height, options.width},
                          maps[0].options(), kChannelsLast);
  const Observed observed("roi_align_forward", maps, output);
  roi_align_forward<T>(features, regions.rois.const_data_ptr<T>(),
                       regions.levels.const_data_ptr<std::int64_t>(), regions.rois.size(0), options,
                       output.mutable_data_ptr<T>());
  return output;
}

template <typename T>
void spread(const at::Tensor& grad_output, const Regions& regions, const RoiAlignOptions& options,
            const std::vector<at::Tensor>& grads) {
  std::vector<FeatureMap<T>> features;
  double scale = options.scale;
  for (const auto& grad : grads) {
    grad.zero_();
    features.push_back(as_map<T>(grad, grad.mutable_data_ptr<T>(), scale));
    scale /= 2;
  }
  const auto cells = grad_output.contiguous(kChannelsLast);
  const Observed observed("roi_align_backward", cells, grads);
  roi_align_backward<T>(cells.const_data_ptr<T>(), regions.rois.const_data_ptr<T>(),
                        regions.levels.const_data_ptr<std::int64_t>(), regions.rois.size(0),
                        options, features);
}

class RoiAlign : public torch::autograd::Function<RoiAlign> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::TensorList maps,
                            const Regions& regions, const RoiAlignOptions& options) {
    context->save_for_backward({regions.rois, regions.levels});
    std::vector<std::int64_t> sizes;
    for (const auto& map : maps) sizes.insert(sizes.end(), map.sizes().begin(), map.sizes().end());
    auto& saved = context->saved_data;
    saved["sizes"] = sizes;
    saved["cells"] = std::vector{options.height, options.width};
    saved["scale"] = options.scale;
    saved["sampling_ratio"] = options.sampling_ratio;
    saved["aligned"] = options.aligned;
    if (const auto* ops = device_ops(maps[0]))
      return ops->roi_align(maps, regions.rois, regions.levels, options);
    return maps[0].scalar_type() == at::kDouble ? pool<double>(maps, regions, options)
                                                : pool<float>(maps, regions, options);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    auto& saved = context->saved_data;
    const auto cells = saved["cells"].toIntVector(), sizes = saved["sizes"].toIntVector();
    const RoiAlignOptions options{cells[0], cells[1], saved["scale"].toDouble(),
                                  saved["sampling_ratio"].toInt(), saved["aligned"].toBool()};
    const auto tensors = context->get_saved_variables();
    const Regions regions{tensors[0], tensors[1]};
    torch::autograd::variable_list result;
    for (std::size_t i = 0; i < sizes.size(); i += 4)
      result.push_back(at::empty({sizes[i], sizes[i + 1], sizes[i + 2], sizes[i + 3]},
                                 grads[0].options(), kChannelsLast));
    if (const auto* ops = device_ops(grads[0]))
      ops->roi_align_backward(grads[0], regions.rois, regions.levels, options, result);
    else if (grads[0].scalar_type() == at::kDouble)
      spread<double>(grads[0], regions, options, result);
    else
      spread<float>(grads[0], regions, options, result);
    result.resize(result.size() + 2);  // regions and options have none
    return result;
  }
};

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
  RECORD_USER_SCOPE("roi_align");
  check_maps(maps);
  const auto type = maps[0].scalar_type();
  if (!at::isFloatingType(type))
    throw std::invalid_argument("roi_align: maps must be of floating point");
  const bool on_cpu = maps[0].is_cpu();
  if (on_cpu && type != at::kFloat && type != at::kDouble) {
    std::vector<at::Tensor> wide;
    for (const auto& map : maps) wide.push_back(map.to(at::kFloat));
    return roi_align(wide, rois, levels, options).to(type);
  }
  if (rois.dim() != 2 || rois.size(1) != 5)
    throw std::invalid_argument("roi_align: rois must be (R, 5)");
  if (levels.defined() &&
      (levels.dim() != 1 || levels.size(0) != rois.size(0) || levels.scalar_type() != at::kLong))
    throw std::invalid_argument("roi_align: levels must be (R) int64");
  if (options.height < 1 || options.width < 1)
    throw std::invalid_argument("roi_align: a region has at least one cell");
  const Regions regions{rois.detach().to(on_cpu ? type : at::kFloat).contiguous(),
                        levels.defined()
                            ? levels.contiguous()
                            : at::zeros({rois.size(0)}, rois.options().dtype(at::kLong))};
  return RoiAlign::apply(maps, regions, options);
}

}  // namespace millrace
