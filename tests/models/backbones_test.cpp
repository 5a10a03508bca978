#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "millrace/models/backbones/fpn.h"
#include "millrace/models/backbones/hrfpn.h"
#include "millrace/models/backbones/hrnet.h"
#include "millrace/models/backbones/resnet.h"

namespace millrace::testing {
namespace {

std::vector<at::Tensor> maps_of(const PyramidOptions& options, Parameters& parameters) {
  const at::NoGradGuard no_grad;
  return ResNet(Scope(parameters, 1), options)(at::zeros({1, 3, 64, 96}), NormMode{});
}

TEST(ResNet, ReturnsMapsOfStrides4To32) {
  for (const auto& [type, widen] : {std::pair{BackboneType::resnet18, 1},
                                    {BackboneType::resnet34, 1},
                                    {BackboneType::resnet50, 4},
                                    {BackboneType::resnet101, 4}})
    for (const bool deep : {false, true}) {
      Parameters parameters;
      const auto maps =
          maps_of({.backbone = type, .width = 16, .deep_stem = deep, .avg_down = deep}, parameters);
      ASSERT_EQ(maps.size(), 4U);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(maps[i].sizes(), at::IntArrayRef({1, (16 * widen) << i, 16 >> i, 24 >> i}))
            << value_name(type) << (deep ? "d" : "");
      }
    }
}

TEST(ResNet, MatchesResNeXtIfGrouped) {
  Parameters parameters;
  const auto maps = maps_of({.groups = 32, .width_per_group = 4}, parameters);
  EXPECT_EQ(maps[3].size(1), 2048);
  // The shape in ResNeXt-50 32x4d.
  const auto& weight = parameters.find("layer2.1.conv2.weight")->value;
  EXPECT_EQ(weight.sizes(), at::IntArrayRef({256, 8, 3, 3}));
}

TEST(HrNet, UsesTimmTensorNames) {
  Parameters parameters;
  const at::NoGradGuard no_grad;
  const HrNet net(Scope(parameters, 1), {.backbone = BackboneType::hrnet_w18, .freeze_at = 3});
  const auto maps = net(at::zeros({1, 3, 64, 96}), NormMode{});
  ASSERT_EQ(maps.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(maps[i].sizes(), at::IntArrayRef({1, 18 << i, 16 >> i, 24 >> i}));
  for (const auto* name :
       {"bn2.running_var", "layer1.0.downsample.1.bias", "transition1.1.0.0.weight",
        "transition2.2.0.1.weight", "stage3.3.branches.2.3.conv2.weight",
        "stage2.0.fuse_layers.0.1.0.weight", "stage4.2.fuse_layers.3.0.2.1.running_mean"})
    EXPECT_TRUE(parameters.find(name)) << name;
  EXPECT_FALSE(parameters.find("stage2.0.branches.1.0.conv1.weight")->trainable());
  EXPECT_TRUE(parameters.find("stage3.0.branches.1.0.conv1.weight")->trainable());
  EXPECT_EQ(parameters.find("transition2.0.0.weight"), nullptr);
}

TEST(HrFpn, HalvesEachLevelDownToOneCell) {
  const std::vector<at::Tensor> c = {at::zeros({1, 2, 8, 24}), at::zeros({1, 4, 4, 12}),
                                     at::zeros({1, 8, 2, 6}), at::zeros({1, 16, 1, 3})};
  for (const auto& [top, finest] : {std::pair{FpnTop::pool, 8}, {FpnTop::c5, 4}}) {
    Parameters parameters;
    const HrFpn pyramid(Scope(parameters, 1) / "fpn", {2, 4, 8, 16}, 5, {.kind = Norm::none}, top);
    const auto p = pyramid(c, {});
    ASSERT_EQ(p.size(), 5U);
    EXPECT_EQ(p[0].sizes(), at::IntArrayRef({1, 5, finest, 3 * finest}));
    EXPECT_EQ(p[4].size(2), 1);
  }
}

TEST(ResNet, UsesTimmTensorNamesForVariants) {
  Parameters parameters;
  maps_of({.width = 16, .deep_stem = true, .avg_down = true}, parameters);
  for (const auto* name :
       {"conv1.0.weight", "conv1.1.weight", "conv1.3.weight", "conv1.4.bias", "conv1.6.weight",
        "bn1.running_mean", "layer1.0.downsample.1.weight", "layer2.0.downsample.2.running_var"})
    EXPECT_TRUE(parameters.find(name)) << name;
  EXPECT_EQ(parameters.find("conv1.weight"), nullptr);
  EXPECT_EQ(parameters.find("layer2.0.downsample.0.weight"), nullptr);
}

TEST(Fpn, ComputesTopLevelsFromChosenMap) {
  const std::vector<at::Tensor> c = {at::zeros({1, 4, 16, 24}), at::zeros({1, 6, 8, 12}),
                                     at::zeros({1, 8, 4, 6})};
  for (const auto& [top, channels] : {std::pair{FpnTop::p5, 5}, {FpnTop::c5, 8}}) {
    Parameters parameters;
    const Fpn fpn(Scope(parameters, 1) / "fpn", {4, 6, 8}, 5, {.kind = Norm::none}, top);
    const auto p = fpn(c, {});
    ASSERT_EQ(p.size(), 5U);
    EXPECT_EQ(p[3].sizes(), at::IntArrayRef({1, 5, 2, 3}));
    EXPECT_EQ(p[4].sizes(), at::IntArrayRef({1, 5, 1, 2}));
    EXPECT_EQ(parameters.find("fpn.extra_blocks.p6.weight")->value.size(1), channels);
  }
}

}  // namespace
}  // namespace millrace::testing
