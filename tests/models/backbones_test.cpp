#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/resnet.h"

namespace millrace::testing {
namespace {

std::vector<at::Tensor> maps_of(const PyramidOptions& options, Parameters& parameters) {
  const at::NoGradGuard no_grad;
  return ResNet(Scope(parameters, 1), options)(at::zeros({1, 3, 64, 96}), NormPass{});
}

TEST(ResNet, EveryDepthAndVariantGivesStridesOfFourToThirtyTwo) {
  for (const auto& [type, widen] :
       {std::pair{"resnet18", 1}, {"resnet34", 1}, {"resnet50", 4}, {"resnet101", 4}})
    for (const bool deep : {false, true}) {
      Parameters parameters;
      const auto maps = maps_of(
          {.backbone = type, .width = 16, .deep_stem = deep, .pool_shortcut = deep}, parameters);
      ASSERT_EQ(maps.size(), 4U);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(maps[i].sizes(), at::IntArrayRef({1, (16 * widen) << i, 16 >> i, 24 >> i}))
            << type << (deep ? "d" : "");
      }
    }
}

TEST(ResNet, TheVariantsTensorsAreNamedAsInTimm) {
  Parameters parameters;
  maps_of({.width = 16, .deep_stem = true, .pool_shortcut = true}, parameters);
  for (const auto* name :
       {"conv1.0.weight", "conv1.1.weight", "conv1.3.weight", "conv1.4.bias", "conv1.6.weight",
        "bn1.running_mean", "layer1.0.downsample.1.weight", "layer2.0.downsample.2.running_var"})
    EXPECT_TRUE(parameters.find(name)) << name;
  EXPECT_EQ(parameters.find("conv1.weight"), nullptr);
  EXPECT_EQ(parameters.find("layer2.0.downsample.0.weight"), nullptr);
}

TEST(Fpn, TwoLevelsOnTopHalveTheSidesAndStartWhereToldTo) {
  const std::vector<at::Tensor> c = {at::zeros({1, 4, 16, 24}), at::zeros({1, 6, 8, 12}),
                                     at::zeros({1, 8, 4, 6})};
  for (const auto& [top, channels] : {std::pair{FpnTop::p5, 5}, {FpnTop::c5, 8}}) {
    Parameters parameters;
    const Fpn fpn(Scope(parameters, 1) / "fpn", {4, 6, 8}, 5, {.kind = "none"}, top);
    const auto p = fpn(c, {});
    ASSERT_EQ(p.size(), 5U);
    EXPECT_EQ(p[3].sizes(), at::IntArrayRef({1, 5, 2, 3}));
    EXPECT_EQ(p[4].sizes(), at::IntArrayRef({1, 5, 1, 2}));
    EXPECT_EQ(parameters.find("fpn.extra_blocks.p6.weight")->value.size(1), channels);
  }
}

}  // namespace
}  // namespace millrace::testing
