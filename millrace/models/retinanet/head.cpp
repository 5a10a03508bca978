#include "millrace/models/retinanet/head.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

namespace millrace {

DenseHead::DenseHead(const Scope& scope, const char* name, const RetinaNetOptions& options,
                     std::int64_t values, double bias)
    : values_(values) {
  const auto channels = options.pyramid.channels;
  const Init small{Init::Kind::normal, 0.01};
  for (std::int64_t i = 0; i < options.convs; ++i) {
    const auto place = scope / "conv" / i;
    convs_.emplace_back(place / 0, place / 1, Conv2d::Shape{channels, channels, 3},
                        NormOptions{.kind = options.norm}, 1, small);
  }
  last_ = Conv2d(scope / name, {channels, options.anchors.cell_count() * values, 3}, small);
  const at::NoGradGuard no_grad;
  last_.bias.fill_(bias);
}

at::Tensor DenseHead::operator()(const std::vector<at::Tensor>& maps) const {
  std::vector<at::Tensor> levels;
  for (const auto& map : maps) {
    auto x = map;
    for (const auto& conv : convs_) x = conv(x, NormPass{.training = true}, {.relu = true});
    // Channels last in memory, so that this view costs nothing.
    levels.push_back(last_(x).permute({0, 2, 3, 1}).reshape({map.size(0), -1, values_}));
  }
  return at::cat(levels, 1).to(at::kFloat);
}

}  // namespace millrace
