#include "millrace/models/backbones/pyramid_options.h"

#include <fmt/format.h>

namespace millrace {

void PyramidOptions::describe(Options& o) {
  PixelOptions::describe(o);
  o.add("backbone.type", backbone, "backbone network; hrnet_* use HRFPN as the pyramid")
      .affects(WeightEffect::tensors);
  // With fewer than 16 channels, oneDNN's gradient of strided 1x1 convolutions writes out of
  // bounds.
  o.add("backbone.width", width, "channels of the first stage; 64 = the published network",
        {.min = 16, .max = 1024})
      .affects(WeightEffect::tensors);
  o.add("backbone.groups", groups,
        "groups of the bottlenecks' 3x3 convolutions; ResNeXt-50 32x4d has 32, with "
        "width_per_group = 4",
        {.min = 1, .max = 1024})
      .affects(WeightEffect::meaning);
  o.add("backbone.width_per_group", width_per_group,
        "channels of each group in the first stage, for width = 64", {.min = 1, .max = 1024})
      .affects(WeightEffect::tensors);
  o.add("backbone.norm", norm, "normalisation of the backbone",
        {Norm::frozen_bn, Norm::frozen_stats, Norm::bn, Norm::sync_bn, Norm::gn, Norm::none})
      .affects(WeightEffect::tensors, {"frozen_bn", "frozen_stats", "bn", "sync_bn"});
  o.add("norm_eps", norm_eps, "epsilon added to variances", {.min = 0, .max = 1})
      .affects(WeightEffect::meaning);
  o.add("backbone.freeze_at", freeze_at,
        "number of frozen stages: 1 = the stem, 2 = also the first stage, ...; 0 = none",
        {.min = 0, .max = 5});
  o.add("backbone.stride_in_1x1", stride_in_1x1,
        "apply the stride of bottlenecks in the 1x1 convolution (MSRA) instead of the 3x3")
      .affects(WeightEffect::meaning);
  o.add("backbone.deep_stem", deep_stem,
        "use three 3x3 convolutions instead of the 7x7 (ResNet-C and -D)")
      .affects(WeightEffect::tensors);
  o.add("backbone.avg_down", avg_down,
        "average 2x2 pixels before the 1x1 convolution of shortcuts with stride (ResNet-D)")
      .affects(WeightEffect::meaning);
  o.add("backbone.zero_init_residual", zero_init_residual,
        "initialise the last norm of each residual branch to 0");
  o.add("fpn.out_channels", out_channels, "channels of the pyramid", {.min = 8, .max = 4096})
      .affects(WeightEffect::tensors);
  o.add("fpn.norm", fpn_norm, "normalisation of the pyramid and the mask head",
        {Norm::none, Norm::gn, Norm::bn, Norm::sync_bn})
      .affects(WeightEffect::tensors, {"bn", "sync_bn"});
}

void PyramidOptions::check(const Config& table, const Options& defaults) const {
  PixelOptions::check(table);
  if (backbone == BackboneType::resnet18 || backbone == BackboneType::resnet34)
    defaults.refuse_unused(
        table, {"backbone.stride_in_1x1", "backbone.groups", "backbone.width_per_group"},
        fmt::format("with backbone.type = \"{}\", whose blocks have no 1x1 convolution",
                    value_name(backbone)));
  if (is_hrnet())
    defaults.refuse_unused(
        table,
        {"backbone.width", "backbone.stride_in_1x1", "backbone.groups", "backbone.width_per_group",
         "backbone.deep_stem", "backbone.avg_down", "backbone.zero_init_residual"},
        fmt::format("with backbone.type = \"{}\", which is not a ResNet", value_name(backbone)));
  if (norm == Norm::none)
    defaults.refuse_unused(table, {"backbone.zero_init_residual"}, "with backbone.norm = \"none\"");
  if (norm == Norm::none && fpn_norm == Norm::none)
    defaults.refuse_unused(table, {"norm_eps"}, "with backbone.norm and fpn.norm = \"none\"");
}

void PyramidOptions::use_torchvision() {
  pixel_order = ChannelOrder::rgb;
  pixel_mean = {123.675, 116.28, 103.53};
  pixel_std = {58.395, 57.12, 57.375};
  stride_in_1x1 = false;
}

}  // namespace millrace
