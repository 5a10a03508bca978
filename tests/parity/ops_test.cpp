// Compares our operators with torchvision's, one at a time. Discrete results must be equal;
// continuous results may differ by rounding.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "millrace/models/layers/anchors.h"
#include "millrace/models/layers/losses.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/roi_align.h"
#include "tests/parity/encoded.h"
#include "tests/parity/golden_cases.h"
#include "tests/support/mask_targets.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

/// Returns the gradient of `output`, weighted by `weights`, with respect to `input`.
at::Tensor gradient(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weights) {
  output.backward(weights);
  return input.grad();
}

RoiAlignOptions options_of(const GoldenCase& golden) {
  const auto& p = golden.parameters;
  const auto& size = p["output_size"];
  return {size[0], size[1], p["spatial_scale"], p["sampling_ratio"], p["aligned"]};
}

TEST(RoiAlignParity, MatchesOutputAndGradient) {
  int compared = 0;
  each_case("roi_align", "c", [&](const GoldenCase& golden) {
    const auto input = leaf(golden["input"]);
    const auto output = roi_align({input}, golden["rois"], {}, options_of(golden));
    EXPECT_TRUE(tensors_close(output, golden["output"], kRounding));
    EXPECT_TRUE(tensors_close(gradient(output, input, golden["grad_output"]), golden["grad_input"],
                              kRounding));
    ++compared;
  });
  EXPECT_EQ(compared, 20);
}

TEST(RoiAlignParity, AcceptsNoRegions) {
  const auto golden = golden_cases("roi_align", "empty").at(0);
  const auto input = leaf(golden["input"]);
  const auto output = roi_align({input}, golden["rois"], {}, options_of(golden));
  EXPECT_TRUE(tensors_equal(output, golden["output"]));
  EXPECT_TRUE(tensors_equal(gradient(output.sum(), input, {}), golden["grad_input"]));
}

TEST(RoiAlignParity, MatchesMaskTargets) {
  const auto golden = golden_cases("roi_align", "mask_targets").at(0);
  const auto& masks = golden["masks"];  // [5, H, W] of 0 and 1
  const auto height = masks.size(1), width = masks.size(2);
  const RecordedShapes shapes(masks, golden["matched_idxs"]);
  const auto targets =
      mask_targets(shapes.matched, golden["boxes"], golden.parameters["M"], MaskTarget::soft,
                   static_cast<double>(height), static_cast<double>(width));
  EXPECT_TRUE(tensors_close(targets, golden["output"], kRounding));
}

TEST(NmsParity, KeepsSameBoxesInSameOrder) {
  each_case("nms", "", [&](const GoldenCase& golden) {
    const auto& scores = golden["scores"];
    const auto one_group = at::zeros({scores.numel()}, at::kLong);
    const auto kept =
        batched_nms(golden["boxes"], scores, one_group, golden.parameters["iou_threshold"]);
    EXPECT_TRUE(tensors_equal(kept, golden["keep"]));
  });
}

TEST(NmsParity, KeepsSameBoxesInEachGroup) {
  each_case("batched_nms", "", [&](const GoldenCase& golden) {
    const auto& scores = golden["scores"];
    const auto kept =
        batched_nms(golden["boxes"], scores, golden["idxs"], golden.parameters["iou_threshold"]);
    // torchvision may order equal scores arbitrarily.
    EXPECT_TRUE(
        tensors_equal(scores.index_select(0, kept), scores.index_select(0, golden["keep"])));
    EXPECT_TRUE(tensors_equal(std::get<0>(kept.sort()), std::get<0>(golden["keep"].sort())));
  });
}

BoxCoder coder_of(const GoldenCase& golden) {
  BoxCoder coder;
  coder.weights = golden.parameters["weights"].get<std::array<double, 4>>();
  return coder;
}

TEST(BoxesParity, MatchesEncoding) {
  each_case("boxes", "encode", [&](const GoldenCase& golden) {
    const auto deltas = coder_of(golden).encode(golden["proposals"], golden["reference"]);
    EXPECT_TRUE(tensors_close(deltas, golden["output"], kRounding));
  });
}

TEST(BoxesParity, MatchesDecodingAndGradient) {
  each_case("boxes", "decode", [&](const GoldenCase& golden) {
    const auto deltas = leaf(golden["deltas"]);
    const auto boxes = coder_of(golden).decode(golden["boxes"], deltas).view_as(golden["output"]);
    EXPECT_TRUE(tensors_close(boxes, golden["output"], kRounding));
    EXPECT_TRUE(tensors_close(gradient(boxes, deltas, golden["grad_output"]), golden["grad_deltas"],
                              kRounding));
  });
}

TEST(BoxesParity, MatchesClipping) {
  const auto golden = golden_cases("boxes", "clip").at(0);
  const auto& p = golden.parameters;
  EXPECT_TRUE(tensors_equal(clip_boxes(golden["boxes"], p["h"], p["w"]), golden["output"]));
}

TEST(BoxesParity, MatchesIou) {
  const auto golden = golden_cases("boxes", "iou").at(0);
  EXPECT_TRUE(tensors_equal(box_iou(golden["a"], golden["b"]), golden["output"]));
}

TEST(MatcherParity, MatchesLabelsAndTruths) {
  const auto iou = golden_cases("boxes", "iou").at(0);
  each_case("boxes", "match", [&](const GoldenCase& golden) {
    const auto& p = golden.parameters;
    ASSERT_TRUE(tensors_equal(iou["output"], golden["iou"]));
    const auto matches =
        match(iou["a"], iou["b"], {p["low"], p["high"], p["allow_low_quality"].get<bool>()});
    const auto& expected = golden["output"];  // index of the truth; -1 background, -2 ignored
    const auto label = expected.ge(0).to(at::kChar) - expected.eq(-2).to(at::kChar);
    EXPECT_TRUE(tensors_equal(matches.label, label));
    const auto foreground = expected.ge(0);
    EXPECT_TRUE(
        tensors_equal(matches.truth.masked_select(foreground), expected.masked_select(foreground)));
  });
}

TEST(AnchorsParity, MatchesRoundedAnchorsAtGridStrides) {
  each_case("anchors", "", [&](const GoldenCase& golden) {
    const auto& p = golden.parameters;
    std::vector<at::Tensor> cells, anchors;
    for (std::size_t level = 0; level < p["grids"].size(); ++level) {
      const std::int64_t height = p["grids"][level][0], width = p["grids"][level][1];
      const std::pair<double, double> stride = {p["image"][0].get<std::int64_t>() / height,
                                                p["image"][1].get<std::int64_t>() / width};
      cells.push_back(
          cell_anchors({p["sizes"][level]}, p["ratios"], AnchorRounding::rounded, stride.first));
      anchors.push_back(grid_anchors(cells.back(), height, width, stride));
    }
    EXPECT_TRUE(tensors_equal(at::cat(cells), golden["cell"]));
    EXPECT_TRUE(tensors_equal(at::cat(anchors), golden["output"]));
  });
}

TEST(LossesParity, MatchesSmoothL1) {
  each_case("losses", "smooth_l1", [&](const GoldenCase& golden) {
    const auto input = leaf(golden["input"]);
    const auto loss = smooth_l1_sum(input, golden["target"], golden.parameters["beta"]);
    EXPECT_TRUE(tensors_close(loss, golden["output"], kRounding));
    EXPECT_TRUE(tensors_close(gradient(loss, input, {}), golden["grad_input"], kRounding));
  });
}

TEST(LossesParity, MatchesBinaryCrossEntropy) {
  each_case("losses", "bce", [&](const GoldenCase& golden) {
    const auto input = leaf(golden["input"]);
    const auto mean = binary_cross_entropy_sum(input, golden["target"]) / input.numel();
    EXPECT_TRUE(tensors_close(mean, golden["output"], kRounding));
    EXPECT_TRUE(tensors_close(gradient(mean, input, {}), golden["grad_input"], kRounding));
  });
}

}  // namespace
}  // namespace millrace::testing
