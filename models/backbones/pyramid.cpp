#include "models/backbones/pyramid.h"

#include "base/errors.h"

namespace millrace {

void PyramidOptions::describe(Options& o) {
  o.add("pixel_order", pixel_order, "order of the input's channels", {"rgb", "bgr"});
  o.add("pixel_mean", pixel_mean, "subtracted from each channel, in pixel_order");
  o.add("pixel_std", pixel_std, "each channel is divided by it, in pixel_order", {.min = 1e-6});

  o.add("backbone", backbone, "the residual network",
        {"resnet18", "resnet34", "resnet50", "resnet101"});
  o.add("width", width, "channels of the first stage; 64 is the published network",
        {.min = 4, .max = 1024});
  o.add("norm", norm, "normalisation of the backbone",
        {"frozen_bn", "frozen_stats", "bn", "gn", "none"});
  o.add("norm_epsilon", norm_epsilon, "added to variances", {.min = 0, .max = 1});
  o.add("freeze_at", freeze_at, "stages not trained: 1 the stem, 2 also C2, ...; 0 none",
        {.min = 0, .max = 5});
  o.add("stride_in_1x1", stride_in_1x1, "bottlenecks stride in the 1x1 (MSRA) instead of the 3x3");
  o.add("zero_init_residual", zero_init_residual, "norms that end a residual branch start at 0");
  o.add("fpn_channels", channels, "channels of the pyramid", {.min = 8, .max = 4096});
  o.add("fpn_norm", fpn_norm, "normalisation of the pyramid and the mask head",
        {"none", "gn", "bn"});
}

void PyramidOptions::use_torchvision() {
  pixel_order = "rgb";
  pixel_mean = {123.675, 116.28, 103.53};
  pixel_std = {58.395, 57.12, 57.375};
  stride_in_1x1 = false;
}

PixelOptions PyramidOptions::pixels() const {
  if (pixel_mean.size() != 3 || pixel_std.size() != 3)
    throw ConfigError("model.pixel_mean and model.pixel_std take three numbers each");
  PixelOptions result{.bgr = pixel_order == "bgr"};
  for (std::size_t c = 0; c < 3; ++c) {
    result.mean[c] = static_cast<float>(pixel_mean[c]);
    result.std[c] = static_cast<float>(pixel_std[c]);
  }
  return result;
}

ResNetOptions PyramidOptions::resnet() const {
  return {.depth = std::stoll(backbone.substr(6)),
          .width = width,
          .freeze_at = freeze_at,
          .stride_in_1x1 = stride_in_1x1,
          .zero_init_residual = zero_init_residual,
          .norm = {norm, norm_epsilon}};
}

Pyramid::Pyramid(const Scope& scope, const PyramidOptions& options)
    : pixels_(options.pixels()),
      body_(scope / "body", options.resnet()),
      fpn_(scope / "fpn", body_.channels(), options.channels, options.head_norm()) {
  for (const auto& prefix : ResNet::frozen_prefixes(options.freeze_at))
    (scope / "body").freeze(prefix);
}

std::vector<at::Tensor> Pyramid::operator()(const Batch& batch, bool training) const {
  return fpn_(body_(normalize(batch, pixels_), training), training);
}

void Pyramid::refresh() {
  body_.refresh();
  fpn_.refresh();
}

}  // namespace millrace
