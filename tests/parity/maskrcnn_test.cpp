// Stage by stage against torchvision's Mask R-CNN: each stage is fed the recorded tensor of the stage before.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "models/backbones/fpn.h"
#include "models/backbones/resnet.h"
#include "models/maskrcnn/options.h"
#include "tests/data.h"
#include "trainer/safetensors.h"

namespace millrace {
namespace {

std::filesystem::path goldens() {
  const char* set = std::getenv("MILLRACE_GOLDENS");
  return set ? std::filesystem::path(set) : testing::data_folder() / "goldens";
}

/// The goldens' formula weights: splitmix64 over (name, seed, index).
void fill_by_formula(const Parameters& parameters, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;
  for (const auto& [name, value, kind] : parameters) {
    const auto has = [&, &name = name](const char* part) {
      return name.find(part) != std::string::npos;
    };
    const auto ends = [&, &name = name](const char* part) { return name.ends_with(part); };
    const bool norm = has(".bn") || has("downsample.1");
    double offset = 0, scale = 0.05;
    if (norm && ends(".weight")) {
      offset = has("bn3") ? 0.25 : 1;
      scale = has("bn3") ? 0.05 : 0.2;
    } else if (norm && ends("running_var")) {
      offset = 1, scale = 0.3;
    } else if (norm) {
      scale = 0.1;
    } else if (ends(".weight")) {
      double f = 6;
      if (has(".fpn.")) f = 1;
      if (has(".box_head.") || has("cls_logits") || has("box_predictor.bbox_pred")) f = 3;
      if (has("rpn.head.bbox_pred")) f = 0.5;
      if (has("cls_score")) f = 12;
      if (has("mask_fcn_logits")) f = 4;
      const auto fan_in = has("conv5_mask") ? value.size(0) : value.numel() / value.size(0);
      scale = std::sqrt(f / static_cast<double>(fan_in));
    }
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    auto flat = at::empty(value.sizes(), at::kFloat);
    auto* out = flat.data_ptr<float>();
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      const auto u =
          static_cast<double>(
              mix(hash + seed * kStep + static_cast<std::uint64_t>(i + 1) * kStep) >> 40) /
              0x1p23 -
          1;
      out[i] = static_cast<float>(offset + scale * u);
    }
    at::Tensor(value).copy_(flat);
  }
}

class TorchvisionStages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(goldens() / "r50_infer.safetensors"))
      GTEST_SKIP() << "no goldens in " << goldens() << " (set MILLRACE_GOLDENS)";
    for (auto& [name, tensor] : read_safetensors(goldens() / "r50_infer.safetensors"))
      golden_[name] = tensor;
    options_ = MaskRcnnOptions::defaults_for(parse_config("style = \"torchvision\"", "test"));
    options_.rpn.post_nms_test = 200;
    const Scope root(parameters_, 1);
    body_ = ResNet(root / "backbone" / "body", options_.pyramid.resnet());
    fpn_ = Fpn(root / "backbone" / "fpn", body_.channels(), 256, options_.pyramid.head_norm());
    rpn_.emplace(root / "rpn", options_.rpn, options_.boxes, 256);
    box_stages_.emplace(root / "roi_heads", options_.box_stages, options_.boxes, options_.pool, 256,
                        90, options_.first_class());
    mask_head_.emplace(root / "roi_heads", options_.mask_head, options_.pyramid.head_norm(),
                       options_.pool, 256, 90, options_.first_class());
    fill_by_formula(parameters_, 1);
  }

  /// Largest difference over the largest value.
  static double relative_error(const at::Tensor& a, const at::Tensor& b) {
    return ((a.to(at::kDouble) - b.to(at::kDouble)).abs().max() / b.abs().max().to(at::kDouble))
        .item<double>();
  }

  void expect_maps(const std::vector<at::Tensor>& maps, const std::string& prefix, int first) {
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const auto name = prefix + std::to_string(first + static_cast<int>(i));
      EXPECT_LT(
          relative_error(maps[i].index_select(1, golden_[name + ".chan"]), golden_[name + ".sub"]),
          1e-5)
          << name;
      EXPECT_LT(relative_error(maps[i].to(at::kDouble).abs().sum({2, 3}), golden_[name + ".abs"]),
                1e-6)
          << name;
    }
  }

  std::vector<ImageSize> sizes() {
    const auto* size = golden_["in.image_sizes"].data_ptr<std::int64_t>();
    return {{size[0], size[1]}, {size[2], size[3]}};
  }

  Features features() {
    const auto& batch = golden_["in.batch"];
    return {fpn_(body_(batch, false), false), {batch.size(2), batch.size(3)}, sizes()};
  }

  const at::NoGradGuard no_grad_;
  std::map<std::string, at::Tensor> golden_;
  MaskRcnnOptions options_;
  Parameters parameters_;
  ResNet body_;
  Fpn fpn_;
  std::optional<Rpn> rpn_;
  std::optional<BoxStages> box_stages_;
  std::optional<MaskHead> mask_head_;
};

TEST_F(TorchvisionStages, ParametersAreTorchvisionsByNameAndNumber) {
  EXPECT_EQ(parameters_.size(), 307U);
  EXPECT_EQ(parameters_.count(), 44'507'633);
  EXPECT_NEAR(
      parameters_.find("backbone.body.conv1.weight")->value.to(at::kDouble).sum().item<double>(),
      14.001398033587, 1e-6);
  EXPECT_NEAR(
      parameters_.find("roi_heads.box_head.fc6.weight")->value.to(at::kDouble).sum().item<double>(),
      57.059520863199, 1e-5);
}

TEST_F(TorchvisionStages, BackboneAndPyramidAgree) {
  const auto c = body_(golden_["in.batch"], false);
  expect_maps(c, "body.C", 2);
  expect_maps(fpn_(c, false), "fpn.P", 2);
}

TEST_F(TorchvisionStages, RpnAgrees) {
  const auto output = (*rpn_)(features());
  EXPECT_TRUE(output.anchors.equal(golden_["rpn.anchors"]));
  EXPECT_LT(relative_error(output.logits, golden_["rpn.logits"]), 1e-5);
  EXPECT_LT(relative_error(output.deltas, golden_["rpn.deltas"]), 1e-5);
}

TEST_F(TorchvisionStages, ProposalsFromRecordedLogitsAreTheSame) {
  auto output = (*rpn_)(features());
  output.logits = golden_["rpn.logits"];
  output.deltas = golden_["rpn.deltas"];
  const auto proposals = rpn_->proposals(output, sizes(), /*training=*/false);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& ours = proposals[i];
    const auto theirs = golden_["rpn.proposals" + std::to_string(i)];
    ASSERT_EQ(ours.sizes(), theirs.sizes());
    // torchvision's last sort is not stable: of equal probabilities the order is left open.
    const auto by_place = [](const at::Tensor& boxes) {
      const auto key =
          boxes.to(at::kDouble).mul(at::tensor({1.0, 1e3, 1e6, 1e9}, at::kDouble)).sum(1);
      return boxes.index_select(0, key.argsort());
    };
    EXPECT_LT(relative_error(by_place(ours), by_place(theirs)), 1e-6);
  }
}

TEST_F(TorchvisionStages, RegionsGoToTheSameLevelsAndHaveTheSameFeatures) {
  const auto rois = as_rois({golden_["rpn.proposals0"], golden_["rpn.proposals1"]});
  EXPECT_TRUE(
      (region_levels(rois.narrow(1, 1, 4), options_.pool) - 2).equal(golden_["roi.levels"]));
  const auto kept = rois.index_select(0, golden_["roi.first_idx"]);
  const auto p = features().maps;
  const auto box = pool_regions(p, kept, 7, options_.pool);
  EXPECT_LT(relative_error(box.index_select(1, golden_["roi.box_feats.chan"]),
                           golden_["roi.box_feats.sub"]),
            1e-5);
  const auto mask = pool_regions(p, kept, 14, options_.pool);
  EXPECT_LT(relative_error(mask.index_select(1, golden_["roi.mask_feats.chan"]),
                           golden_["roi.mask_feats.sub"]),
            1e-5);
}

TEST_F(TorchvisionStages, DetectionsFromRecordedProposalsMatchByBoxAndScore) {
  const auto p = features();
  const auto found = box_stages_->detect(p, {golden_["rpn.proposals0"], golden_["rpn.proposals1"]},
                                         options_.detection);
  std::vector<at::Tensor> boxes, labels, masks;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto det = "det" + std::to_string(i);
    ASSERT_EQ(found[i].boxes.sizes(), golden_[det + ".boxes_net"].sizes());
    EXPECT_LT(relative_error(found[i].scores, golden_[det + ".scores"]), 1e-4);
    EXPECT_TRUE((found[i].labels + 1).equal(golden_[det + ".labels"]));
    EXPECT_LT(relative_error(found[i].boxes, golden_[det + ".boxes_net"]), 1e-4);
    boxes.push_back(golden_[det + ".boxes_net"]);
    labels.push_back(golden_[det + ".labels"] - 1);
    masks.push_back(golden_[det + ".mask28"]);
  }
  EXPECT_LT(relative_error(mask_head_->detect(p, boxes, at::cat(labels)), at::cat(masks)), 1e-4);
}

}  // namespace
}  // namespace millrace
