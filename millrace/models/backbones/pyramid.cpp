#include "millrace/models/backbones/pyramid.h"

namespace millrace {

Pyramid::Pyramid(const Scope& scope, const PyramidOptions& options, FpnTop top)
    : pixels_(options.pixels()),
      first_(top == FpnTop::pool ? 0 : 1),
      device_(scope.device()),
      body_(scope / "body", options.resnet()) {
  const auto channels = body_.channels();
  fpn_ = Fpn(scope / "fpn", at::IntArrayRef(channels).slice(first_), options.channels,
             options.head_norm(), top);
  for (const auto& prefix : ResNet::frozen_prefixes(options.freeze_at))
    (scope / "body").freeze(prefix);
}

std::vector<at::Tensor> Pyramid::operator()(const Batch& batch, const NormPass& pass,
                                            cv::Size padded) const {
  const auto c = body_(normalize(batch, pixels_, device_, padded), pass);
  return fpn_(at::TensorList(c).slice(first_), pass);
}

void Pyramid::refresh() {
  body_.refresh();
  fpn_.refresh();
}

}  // namespace millrace
