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

template <class X>
std::vector<X> Pyramid::maps_of(const X& x, const NormMode& mode) const {
  auto c = std::visit([&](const auto& body) { return body(x, mode); }, body_);
  c.erase(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(first_));
  return std::visit([&](const auto& neck) { return neck(c, mode); }, neck_);
}

std::vector<at::Tensor> Pyramid::operator()(const Batch& batch, const NormMode& mode,
                                            cv::Size padded) const {
  return maps_of(normalize(batch, options_, device_, padded), mode);
}

std::vector<onnx::Value> Pyramid::operator()(const onnx::Value& pixels, const onnx::Value& sizes,
                                             const onnx::Value& padded) const {
  return maps_of(normalize(pixels, sizes, padded, options_), NormMode{});
}

}  // namespace millrace
