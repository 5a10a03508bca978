#include "millrace/models/weights/schemes.h"

#include <ATen/ops/arange.h>

#include <map>

#include "millrace/base/errors.h"
#include "millrace/models/weights/name_pattern.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace {
namespace {

using testing::tensors_equal;

/// Returns all tensors of Mask R-CNN with ResNet-50-FPN under our names, with distinct values.
NamedTensors mask_rcnn() {
  NamedTensors tensors;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const auto side : shape) count *= side;
    const auto first = static_cast<std::int64_t>(1000 * tensors.size());
    tensors.emplace_back(name, at::arange(first, first + count, at::kFloat).view(shape));
  };
  const auto conv = [&](const std::string& name, std::int64_t kernel, bool bias) {
    add(name + ".weight", {2, 3, kernel, kernel});
    if (bias) add(name + ".bias", {2});
  };
  const auto norm = [&](const std::string& name) {
    for (const auto* what : {".weight", ".bias", ".running_mean", ".running_var"})
      add(name + what, {2});
  };
  const std::string body = "backbone.body.";
  conv(body + "conv1", 7, false), norm(body + "bn1");
  for (const auto& [stage, blocks] : std::map<int, int>{{1, 3}, {2, 4}, {3, 6}, {4, 3}})
    for (int block = 0; block < blocks; ++block) {
      const auto place = body + "layer" + std::to_string(stage) + "." + std::to_string(block) + ".";
      for (const auto* number : {"1", "2", "3"})
        conv(place + "conv" + number, 3, false), norm(place + "bn" + number);
      if (block == 0) conv(place + "downsample.0", 1, false), norm(place + "downsample.1");
    }
  for (const auto* level : {"0", "1", "2", "3"}) {
    conv(std::string("backbone.fpn.inner_blocks.") + level + ".0", 1, true);
    conv(std::string("backbone.fpn.layer_blocks.") + level + ".0", 3, true);
    conv(std::string("roi_heads.mask_head.") + level + ".0", 3, true);
  }
  conv("rpn.head.conv.0.0", 3, true), conv("rpn.head.cls_logits", 1, true);
  conv("rpn.head.bbox_pred", 1, true);
  for (const auto* layer :
       {"box_head.fc6", "box_head.fc7", "box_predictor.cls_score", "box_predictor.bbox_pred"}) {
    add(std::string("roi_heads.") + layer + ".weight", {2, 3});
    add(std::string("roi_heads.") + layer + ".bias", {2});
  }
  conv("roi_heads.mask_predictor.conv5_mask", 2, true);
  conv("roi_heads.mask_predictor.mask_fcn_logits", 1, true);
  return tensors;
}

TEST(Schemes, KeepTensorsInRoundTrip) {
  const auto model = mask_rcnn();
  for (const auto* name :
       {"torchvision", "torchvision-2019", "detectron2", "mmdetection", "tensorpack"}) {
    std::vector<std::string> unknown;
    const auto& scheme = scheme_named(name);
    auto theirs = in_names_of(scheme, model, unknown);
    EXPECT_EQ(theirs.size(), model.size());
    EXPECT_TRUE(unknown.empty()) << name << " has no name for " << unknown.front();

    const auto back = in_our_names(theirs);
    EXPECT_EQ(back.scheme->name, name);
    ASSERT_EQ(back.tensors.size(), model.size()) << name;
    for (std::size_t i = 0; i < model.size(); ++i) {
      EXPECT_EQ(back.tensors[i].name, model[i].first) << name;
      EXPECT_EQ(back.tensors[i].stored_as, theirs[i].first);
      EXPECT_TRUE(tensors_equal(back.tensors[i].value, model[i].second))
          << name << " " << model[i].first;
    }
  }
}

TEST(Schemes, MatchNamesOfOtherFrameworks) {
  const std::map<std::string, std::map<std::string, std::string>> expected = {
      {"torchvision-2019",
       {{"backbone.fpn.inner_blocks.3.0.bias", "backbone.fpn.inner_blocks.3.bias"},
        {"rpn.head.conv.0.0.weight", "rpn.head.conv.weight"},
        {"roi_heads.mask_head.0.0.weight", "roi_heads.mask_head.mask_fcn1.weight"}}},
      {"detectron2",
       {{"backbone.body.bn1.running_var", "backbone.bottom_up.stem.conv1.norm.running_var"},
        {"backbone.body.layer1.0.downsample.0.weight", "backbone.bottom_up.res2.0.shortcut.weight"},
        {"backbone.body.layer4.2.bn3.bias", "backbone.bottom_up.res5.2.conv3.norm.bias"},
        {"backbone.fpn.layer_blocks.0.0.weight", "backbone.fpn_output2.weight"},
        {"rpn.head.cls_logits.bias", "proposal_generator.rpn_head.objectness_logits.bias"},
        {"roi_heads.box_head.fc6.weight", "roi_heads.box_head.fc1.weight"},
        {"roi_heads.mask_predictor.conv5_mask.weight", "roi_heads.mask_head.deconv.weight"},
        {"roi_heads.mask_predictor.mask_fcn_logits.bias", "roi_heads.mask_head.predictor.bias"}}},
      {"mmdetection",
       {{"backbone.body.bn1.running_var", "backbone.bn1.running_var"},
        {"backbone.body.layer4.2.conv3.weight", "backbone.layer4.2.conv3.weight"},
        {"backbone.fpn.inner_blocks.3.0.bias", "neck.lateral_convs.3.conv.bias"},
        {"rpn.head.conv.0.0.weight", "rpn_head.rpn_conv.weight"},
        {"roi_heads.box_head.fc7.weight", "roi_head.bbox_head.shared_fcs.1.weight"},
        {"roi_heads.box_predictor.2.bbox_pred.bias", "roi_head.bbox_head.2.fc_reg.bias"},
        {"roi_heads.mask_head.3.0.bias", "roi_head.mask_head.convs.3.conv.bias"},
        {"roi_heads.mask_predictor.conv5_mask.weight", "roi_head.mask_head.upsample.weight"}}},
      {"tensorpack",
       {{"backbone.body.conv1.weight", "conv0/W"},
        {"backbone.body.layer3.5.bn2.running_mean", "group2/block5/conv2/bn/mean/EMA"},
        {"backbone.body.layer2.0.downsample.1.weight", "group1/block0/convshortcut/bn/gamma"},
        {"backbone.fpn.inner_blocks.0.0.weight", "fpn/lateral_1x1_c2/W"},
        {"rpn.head.bbox_pred.bias", "rpn/box/b"},
        {"roi_heads.box_predictor.cls_score.weight", "fastrcnn/outputs/class/W"},
        {"roi_heads.mask_head.3.0.bias", "maskrcnn/fcn3/b"}}}};
  for (const auto& [scheme, names] : expected)
    for (const auto& [ours, theirs] : names) {
      std::vector<std::string> unknown;
      const NamedTensors one = {{ours, at::arange(2)}};
      EXPECT_EQ(in_names_of(scheme_named(scheme), one, unknown)[0].first, theirs);
    }
}

/// Returns the tensors of Mask R-CNN on C4: without pyramid, box head and mask head.
NamedTensors mask_rcnn_on_c4() {
  auto tensors = mask_rcnn();
  std::erase_if(tensors, [](const auto& tensor) {
    return tensor.first.starts_with("backbone.fpn.") ||
           tensor.first.starts_with("roi_heads.box_head.") ||
           tensor.first.starts_with("roi_heads.mask_head.");
  });
  return tensors;
}

TEST(Schemes, MapLastStageOfC4ToRes5) {
  const auto model = mask_rcnn_on_c4();
  std::vector<std::string> unknown;
  const auto theirs = in_names_of(scheme_named("detectron2-c4"), model, unknown);
  EXPECT_TRUE(unknown.empty()) << unknown.front();
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < model.size(); ++i) names[model[i].first] = theirs[i].first;
  EXPECT_EQ(names["backbone.body.bn1.running_var"], "backbone.stem.conv1.norm.running_var");
  EXPECT_EQ(names["backbone.body.layer3.5.conv2.weight"], "backbone.res4.5.conv2.weight");
  EXPECT_EQ(names["backbone.body.layer4.0.downsample.1.bias"],
            "roi_heads.res5.0.shortcut.norm.bias");
  EXPECT_EQ(names["roi_heads.mask_predictor.conv5_mask.weight"],
            "roi_heads.mask_head.deconv.weight");
  const auto back = in_our_names(theirs);
  EXPECT_EQ(back.scheme->name, "detectron2-c4");
  for (std::size_t i = 0; i < model.size(); ++i)
    EXPECT_TRUE(back.tensors[i].name == model[i].first &&
                tensors_equal(back.tensors[i].value, model[i].second))
        << model[i].first;
}

TEST(Schemes, TransposeTensorFlowKernels) {
  std::vector<std::string> unknown;
  const auto kernel = at::arange(2 * 3 * 5 * 7, at::kFloat).view({2, 3, 5, 7});  // [out, in, h, w]
  const auto matrix = at::arange(6, at::kFloat).view({2, 3});                    // [out, in]
  const auto theirs = in_names_of(
      scheme_named("tensorpack"),
      {{"backbone.body.conv1.weight", kernel}, {"roi_heads.box_head.fc6.weight", matrix}}, unknown);
  EXPECT_EQ(theirs[0].second.sizes(), at::IntArrayRef({5, 7, 3, 2}));
  EXPECT_EQ(theirs[0].second[4][6][2][1].item<float>(), kernel[1][2][4][6].item<float>());
  EXPECT_EQ(theirs[1].second[2][1].item<float>(), matrix[1][2].item<float>());
}

TEST(Schemes, ReadClassifierAsBackbone) {
  const auto read = in_our_names({{"conv1.weight", at::arange(3)},
                                  {"layer1.0.downsample.1.running_var", at::arange(3)},
                                  {"layer1.0.bn1.num_batches_tracked", at::arange(1)},
                                  {"fc.weight", at::arange(3)}});
  ASSERT_EQ(read.tensors.size(), 3U);
  EXPECT_EQ(read.scheme->name, "resnet");
  EXPECT_EQ(read.tensors[1].name, "backbone.body.layer1.0.downsample.1.running_var");
  EXPECT_EQ(read.tensors[2].name, "fc.weight");
}

TEST(Schemes, KeepNamesOfUnlistedBackbones) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> files = {
      {"resnet",
       {"conv1.weight", "layer1.0.bn1.bias", "stage3.0.branches.1.2.conv1.weight",
        "transition1.1.0.1.running_var"}},
      {"resnet", {"conv1.6.weight", "layer2.0.conv1.weight", "layer2.0.downsample.2.bias"}},
      {"mmdetection",
       {"backbone.conv1.weight", "backbone.layer1.0.bn1.bias",
        "backbone.stage4.2.fuse_layers.3.0.2.1.running_mean", "neck.reduction_conv.conv.bias"}}};
  for (const auto& [scheme, names] : files) {
    NamedTensors tensors;
    for (const auto& name : names) tensors.emplace_back(name, at::arange(3));
    const auto read = in_our_names(tensors);
    EXPECT_EQ(read.scheme->name, scheme);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& ours = read.tensors[i].name;
      EXPECT_EQ(ours, names[i].starts_with("neck.")
                          ? "backbone.fpn.reduction.0.bias"
                          : "backbone.body." + names[i].substr(scheme == "resnet" ? 0 : 9));
      std::vector<std::string> unknown;
      EXPECT_EQ(in_names_of(*read.scheme, {{ours, at::arange(3)}}, unknown)[0].first, names[i]);
      EXPECT_TRUE(unknown.empty());
    }
  }
}

TEST(Schemes, ConvertCaffe2AffineChannelsToNorms) {
  const auto read = in_our_names({{"conv1_w", at::arange(3, at::kFloat).view({3, 1, 1, 1})},
                                  {"conv1_b", at::arange(3, at::kFloat)},
                                  {"res_conv1_bn_s", at::arange(3, at::kFloat)},
                                  {"res_conv1_bn_b", at::arange(3, at::kFloat) + 5},
                                  {"res4_5_branch2c_bn_b", at::arange(3, at::kFloat)}});
  EXPECT_EQ(read.scheme->name, "caffe2");
  std::map<std::string, at::Tensor> named;
  for (const auto& tensor : read.tensors) named[tensor.name] = tensor.value;
  EXPECT_TRUE(tensors_equal(named.at("backbone.body.bn1.weight"), at::arange(3, at::kFloat)));
  EXPECT_TRUE(tensors_equal(named.at("backbone.body.bn1.bias"), at::arange(3, at::kFloat) + 5));
  EXPECT_EQ(named.at("backbone.body.bn1.running_mean").abs().sum().item<float>(), 0);
  EXPECT_FLOAT_EQ(named.at("backbone.body.bn1.running_var")[0].item<float>(), 1 - 1e-5F);
  EXPECT_TRUE(named.contains("backbone.body.layer3.5.bn3.bias"));
}

TEST(Schemes, KeepConvolutionBiasInOwnScheme) {
  const auto read = in_our_names({{"backbone.body.conv1.bias", at::arange(3)}});
  ASSERT_EQ(read.tensors.size(), 1U);
  EXPECT_EQ(read.tensors[0].name, "backbone.body.conv1.bias");
}

TEST(Schemes, SuggestNameForUnknownScheme) {
  EXPECT_THAT([&] { scheme_named("detectron"); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("'detectron2'?")));
}

TEST(NamePattern, ConvertsNumbersWithOffsets) {
  const auto numbers = match_name("res{a+1}.{b}.conv{c}", "res4.10.conv2");
  ASSERT_TRUE(numbers);
  EXPECT_EQ(fill_name("layer{a}.{b}.bn{c}", *numbers), "layer3.10.bn2");
  EXPECT_EQ(fill_name("group{a-1}", *numbers), "group2");
  EXPECT_FALSE(fill_name("group{a-4}", *numbers));
  for (const auto* name : {"res4.10.conv", "res4.10.conv2.", "res0.1.conv2", "res04.1.conv2",
                           "res4.x.conv2", "res", "", "res99999999999.1.conv2"})
    EXPECT_FALSE(match_name("res{a+1}.{b}.conv{c}", name)) << name;
}

}  // namespace
}  // namespace millrace
