#include "millrace/models/backbones/pyramid.h"

namespace millrace {

Pyramid::Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top)
    : options_(options),
      first_(top == FpnTop::pool ? 0 : 1),
      device_(scope.device()),
      body_(scope / "body", options),
      fpn_(scope / "fpn", at::IntArrayRef(body_.channels()).slice(first_), options.channels,
           {options.fpn_norm, options.norm_epsilon}, top) {}

std::vector<at::Tensor> Pyramid::operator()(const Batch& batch, const NormPass& pass,
                                            cv::Size padded) const {
  const auto c = body_(normalize(batch, options_, device_, padded), pass);
  return fpn_(at::TensorList(c).slice(first_), pass);
}

std::vector<onnx::Value> Pyramid::operator()(const onnx::Value& pixels, const onnx::Value& sizes,
                                             const onnx::Value& padded) const {
  const auto c = body_(normalize(pixels, sizes, padded, options_));
  return fpn_({c.begin() + static_cast<std::ptrdiff_t>(first_), c.end()});
}

}  // namespace millrace
