#include "millrace/models/backbones/pyramid.h"

namespace millrace {

Pyramid::Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top)
    : options_(options),
      first_(top == FpnTop::pool || options.is_hrnet() ? 0 : 1),
      device_(scope.device()),
      body_(options.is_hrnet() ? decltype(body_)(HrNet(scope / "body", options))
                               : ResNet(scope / "body", options)) {
  if (!options.has_pyramid()) return;
  const auto in = std::visit([](const auto& body) { return body.channels(); }, body_);
  const NormOptions norm{options.fpn_norm, options.norm_eps};
  if (options.is_hrnet())
    neck_ = HrFpn(scope / "fpn", in, options.out_channels, norm, top);
  else
    neck_ = Fpn(scope / "fpn", at::IntArrayRef(in).slice(first_), options.out_channels, norm, top);
}

std::int64_t Pyramid::channels() const {
  return options_.has_pyramid() ? options_.out_channels : resnet().channels()[2];
}

std::vector<at::Tensor> Pyramid::operator()(const Batch& batch, const NormPass& pass,
                                            cv::Size padded) const {
  const auto pixels = normalize(batch, options_, device_, padded);
  const auto c = std::visit([&](const auto& body) { return body(pixels, pass); }, body_);
  return std::visit([&](const auto& neck) { return neck(at::TensorList(c).slice(first_), pass); },
                    neck_);
}

std::vector<onnx::Value> Pyramid::operator()(const onnx::Value& pixels, const onnx::Value& sizes,
                                             const onnx::Value& padded) const {
  const auto x = normalize(pixels, sizes, padded, options_);
  auto c = std::visit([&](const auto& body) { return body(x); }, body_);
  c.erase(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(first_));
  return std::visit([&](const auto& neck) { return neck(c); }, neck_);
}

}  // namespace millrace
