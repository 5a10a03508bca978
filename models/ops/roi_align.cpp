#include "models/ops/roi_align.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>
#include <vector>

#include "models/ops/roi_align_kernel.h"

namespace millrace {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

MapShape shape_of(at::IntArrayRef sizes) { return {sizes[0], sizes[1], sizes[2], sizes[3]}; }

class RoiAlign : public torch::autograd::Function<RoiAlign> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& features,
                            const at::Tensor& rois, const RoiAlignOptions& options) {
    const auto shape = shape_of(features.sizes());
    const auto regions = rois.contiguous();
    const auto taps = roi_taps(regions.const_data_ptr<float>(), regions.size(0), shape, options);
    const auto map = features.contiguous(kChannelsLast);
    auto output = at::empty({regions.size(0), shape.channels, options.size, options.size},
                            features.options(), kChannelsLast);
    roi_align_forward(map.const_data_ptr<float>(), shape, taps, options.size,
                      output.mutable_data_ptr<float>());

    context->save_for_backward({regions});
    context->saved_data["sizes"] = features.sizes().vec();
    context->saved_data["size"] = options.size;
    context->saved_data["scale"] = options.scale;
    context->saved_data["sampling_ratio"] = options.sampling_ratio;
    context->saved_data["aligned"] = options.aligned;
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    auto& saved = context->saved_data;
    const RoiAlignOptions options{saved["size"].toInt(), saved["scale"].toDouble(),
                                  saved["sampling_ratio"].toInt(), saved["aligned"].toBool()};
    const auto sizes = saved["sizes"].toIntVector();
    const auto shape = shape_of(sizes);
    const auto rois = context->get_saved_variables()[0];
    const auto taps = roi_taps(rois.const_data_ptr<float>(), rois.size(0), shape, options);
    const auto grad_output = grads[0].contiguous(kChannelsLast);
    auto grad = at::empty(sizes, grad_output.options(), kChannelsLast).zero_();
    roi_align_backward(grad_output.const_data_ptr<float>(), shape, taps, options.size,
                       grad.mutable_data_ptr<float>());
    return {grad, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor roi_align(const at::Tensor& features, const at::Tensor& rois,
                     const RoiAlignOptions& options) {
  if (features.dim() != 4 || features.numel() == 0 || rois.dim() != 2 || rois.size(1) != 5)
    throw std::invalid_argument(
        "roi_align: features must be (N, C, H, W), not empty, and rois (R, 5)");
  if (features.scalar_type() != at::kFloat || rois.scalar_type() != at::kFloat)
    throw std::invalid_argument("roi_align: features and rois must be float");
  if (options.size < 1) throw std::invalid_argument("roi_align: size must be at least 1");
  return RoiAlign::apply(features, rois, options);
}

}  // namespace millrace
