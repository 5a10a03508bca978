// Compares the heads' losses, frozen batch norm, and level and box selection with torchvision's,
// one at a time.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "millrace/models/detector/loss_sums.h"
#include "millrace/models/layers/losses.h"
#include "millrace/models/layers/objects.h"
#include "millrace/models/maskrcnn/mask_head.h"
#include "millrace/models/maskrcnn/options.h"
#include "tests/parity/encoded.h"
#include "tests/parity/golden_cases.h"
#include "tests/support/mask_targets.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

MaskRcnnOptions torchvision() {
  return default_options<MaskRcnnOptions>(parse_config("style = \"torchvision\"", "test"));
}

TEST(LossesParity, MatchesBoxHeadLossesAndGradients) {
  each_case("losses", "fastrcnn_loss", [&](const GoldenCase& golden) {
    // The recording has regression targets. The head requires regions and objects, so this test
    // makes some that are encoded as these targets.
    const auto options = torchvision();
    const auto coder = options.boxes.coder({10, 10, 5, 5});
    const auto& labels = golden["labels"];
    const auto rows = labels.size(0), classes = golden["class_logits"].size(1);
    const auto order = at::cat({(labels > 0).nonzero(), (labels == 0).nonzero()}).squeeze(1);
    const auto foreground = (labels > 0).sum().item<std::int64_t>();
    const auto regions = at::zeros({rows, 4});
    regions.narrow(1, 2, 2).fill_(100);
    const auto objects = coder.decode(regions, golden["regression_targets"].index_select(0, order));
    const std::vector<Truth> truths = {
        {.boxes = objects, .labels = labels.index_select(0, order) - 1}};
    const SampledRegions sampled = {
        as_rois({regions}), at::arange(foreground), {.foreground = at::arange(foreground)}};

    Parameters parameters;
    const Scope root(parameters, 1);
    const BoxHead head(root / "head", root / "predictor", options.box_stages.head, coder,
                       /*in=*/1, classes - 1, options.first_class());
    const auto logits = leaf(golden["class_logits"]), deltas = leaf(golden["box_deltas"]);
    const auto losses = means_of(head.losses(
        {logits.index_select(0, order), deltas.view({rows, classes, 4}).index_select(0, order)},
        sampled, truths, {}, ""));
    EXPECT_TRUE(tensors_close(losses[0].second, golden["loss_classifier"], kRounding));
    EXPECT_TRUE(tensors_close(losses[1].second, golden["loss_box_reg"], kRounding));
    (losses[0].second + losses[1].second).backward();
    EXPECT_TRUE(tensors_close(logits.grad(), golden["grad_class_logits"], kRounding));
    // targets went through a round trip
    EXPECT_TRUE(tensors_close(deltas.grad(), golden["grad_box_deltas"], 1e-5));
  });
}

TEST(LossesParity, MatchesMaskHeadLossAndGradient) {
  each_case("losses", "maskrcnn_loss", [&](const GoldenCase& golden) {
    const auto& matched = golden["matched_idxs"];
    const auto& masks = golden["gt_masks"];
    const RecordedShapes shapes(masks, matched);
    const auto logits = leaf(golden["mask_logits"]);
    const auto targets =
        mask_targets(shapes.matched, golden["boxes"], logits.size(-1), MaskTarget::soft,
                     static_cast<double>(masks.size(1)), static_cast<double>(masks.size(2)));
    const auto own =
        logits.index({at::arange(matched.size(0)), golden["gt_labels"].index_select(0, matched)});
    const auto loss = binary_cross_entropy_sum(own, targets) / static_cast<double>(own.numel());
    EXPECT_TRUE(tensors_close(loss, golden["output"], kRounding));
    loss.backward();
    EXPECT_TRUE(tensors_close(logits.grad(), golden["grad_mask_logits"], 1e-5));
  });
}

TEST(FrozenBatchNormParity, MatchesOutputAndGradientIfFolded) {
  each_case("frozen_bn", "", [&](const GoldenCase& golden) {
    const auto channels = golden["weight"].size(0);
    Parameters parameters;
    const Scope root(parameters, 1);
    const ConvNorm layer(root / "conv", root / "bn", {channels, channels, 1},
                         {Norm::frozen_bn, golden.parameters["eps"]});
    {
      const at::NoGradGuard no_grad;
      const auto set = [&](const char* name, const at::Tensor& value) {
        at::Tensor(parameters.find(name)->value).copy_(value);
      };
      set("conv.weight", at::eye(channels).view({channels, channels, 1, 1}));
      for (const std::string name : {"weight", "bias", "running_mean", "running_var"})
        set(("bn." + name).c_str(), golden[name]);
    }
    const auto input = leaf(golden["input"]);
    const auto output = layer(input, {.training = true});
    EXPECT_TRUE(tensors_close(output, golden["output"], kRounding));
    output.backward(golden["grad_output"]);
    EXPECT_TRUE(tensors_close(input.grad(), golden["grad_input"], kRounding));
  });
}

TEST(BoxesParity, MatchesRegionLevels) {
  const auto golden = golden_cases("boxes", "fpn_level").at(0);
  EXPECT_TRUE(
      tensors_equal(region_levels(golden["boxes"], torchvision().pool) - 2, golden["output"]));
}

TEST(BoxesParity, RemovesSmallDetections) {
  each_case("boxes", "remove_small", [&](const GoldenCase& golden) {
    const auto& boxes = golden["boxes"];
    // Our detections are also clipped to the image, which is not part of the recording, so only
    // boxes inside the image are used.
    const auto rows = (boxes >= 0).all(1).nonzero().squeeze(1);
    auto kept = at::zeros({boxes.size(0)}, at::kBool);
    kept.index_fill_(0, golden["keep"], true);

    const auto scores = at::arange(rows.size(0), 0, -1, at::kFloat);  // keeps the order
    const DetectionOptions options{
        .nms_thresh = 1, .detections_per_img = 1000, .min_size = golden.parameters["min_size"]};
    const auto found =
        best_detections({boxes.index_select(0, rows), scores, at::arange(rows.size(0))}, {1e4, 1e4},
                        /*offset=*/0, options);
    EXPECT_TRUE(tensors_equal(found.labels, kept.index_select(0, rows).nonzero().squeeze(1)));
  });
}

}  // namespace
}  // namespace millrace::testing
