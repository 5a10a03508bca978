// Compares one training step with torchvision's recording, stage by stage, for the same random
// draws.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "millrace/models/detector/make_detector.h"
#include "millrace/models/maskrcnn/regions.h"
#include "tests/parity/training_parts.h"
#include "tests/support/mask_targets.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

/// A recorded step: input, ground truth and random draws.
struct Step {
  explicit Step(const GoldenRun& golden) : model(golden) {
    input = torchvision_input(golden.of_images("in.image"), golden, sizes);
    const auto boxes = golden.of_images("tgt", ".boxes"), masks = golden.of_images("tgt", ".masks");
    const auto labels = golden.of_images("in.target", ".labels");
    for (std::size_t i = 0; i < boxes.size(); ++i)
      objects.emplace_back(boxes[i], labels[i], masks[i]);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      truths.push_back(objects[i].borrowed());
      const auto image = std::to_string(i);
      const auto drawn = std::get<0>(
          at::cat({golden["roi.sampled_pos" + image], golden["roi.sampled_neg" + image]}).sort());
      draws.push_back({golden["rpn.sampled_pos" + image], golden["rpn.sampled_neg" + image],
                       sampled_regions(golden["roi.sampled_boxes" + image],
                                       golden["roi.sampled_labels" + image],
                                       golden["roi.matched" + image].index_select(0, drawn))});
    }
  }

  GoldenModel model;
  at::Tensor input, sizes;
  std::vector<RecordedTruth> objects;
  std::vector<Truth> truths;
  std::vector<RecordedDraw> draws;
};

/// Returns the index of the matched object like torchvision: 0 if not foreground.
at::Tensor matched(const Matches& matches) {
  return at::where(matches.label == 1, matches.truth, at::zeros_like(matches.truth));
}

TEST(TrainingParity, MatchesAnchorLabels) {
  const at::NoGradGuard no_grad;
  each_golden("loss.sum", [](const GoldenRun& golden) {
    const Step step(golden);
    const auto anchors = step.model.rpn(step.model.features(step.input, step.sizes)).anchors;
    std::vector<at::Tensor> labels, sums;
    for (const auto& truth : step.truths) {
      const auto all = step.model.rpn.match_anchors(anchors, {truth});
      const Matches matches{all.truth[0], all.label[0]};
      labels.push_back(matches.label);
      sums.push_back(truth.boxes.index_select(0, matched(matches)).to(at::kDouble).sum(0));
    }
    EXPECT_TRUE(tensors_equal(at::stack(labels), golden["rpn.labels"]));
    EXPECT_TRUE(agrees(at::stack(sums), golden, "rpn.matched_boxes_sum"));
  });
}

TEST(TrainingParity, MatchesProposalsFromRecordedLogits) {
  each_golden("loss.sum", [](const GoldenRun& golden) {
    const auto inference = golden.beside("infer");  // the forward pass is the same
    const auto ours = proposals_of(inference, options_of(golden), /*training=*/true);
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_TRUE(same_boxes(ours[i], golden["rpn.proposals" + std::to_string(i)]));
  });
}

TEST(TrainingParity, MatchesRegionLabelsAndTargets) {
  each_golden("loss.sum", [](const GoldenRun& golden) {
    const Step step(golden);
    for (std::size_t i = 0; i < step.truths.size(); ++i) {
      const auto image = std::to_string(i);
      const auto& truth = step.truths[i];
      const auto& proposals = golden["rpn.proposals" + image];
      const auto candidates = step.model.box_stages.candidates(
          {proposals.unsqueeze(0), at::full({1}, proposals.size(0), at::kLong)}, {truth});
      const Matches matches{candidates.matches.truth[0], candidates.matches.label[0]};
      const auto truths = matched(matches);
      EXPECT_TRUE(tensors_equal(truths, golden["roi.matched" + image]));
      const auto label = (truth.labels + 1).index_select(0, truths) * (matches.label == 1);
      EXPECT_TRUE(tensors_equal(label, golden["roi.labels" + image]));

      // torchvision's samples are in ascending order; ours begin with the foreground.
      const auto &positive = golden["roi.sampled_pos" + image],
                 &negative = golden["roi.sampled_neg" + image];
      const auto rows = at::cat({positive, negative}), order = rows.argsort();
      const auto regions =
          select_sampled(candidates, {.counts = {{positive.size(0), negative.size(0)}},
                                      .rows = rows,
                                      .image = at::zeros_like(rows),
                                      .foreground = at::arange(positive.size(0))});
      const auto boxes = regions.rois.narrow(1, 1, 4);
      EXPECT_TRUE(tensors_equal(boxes.index_select(0, order), golden["roi.sampled_boxes" + image]));

      const auto foreground = (golden["roi.sampled_labels" + image] > 0).nonzero().squeeze(1);
      const auto targets = step.model.options.boxes.coder({10, 10, 5, 5})
                               .encode(boxes.narrow(0, 0, positive.size(0)),
                                       truth.boxes.index_select(0, regions.truth));
      EXPECT_TRUE(tensors_close(
          targets, golden["roi.regression_targets" + image].index_select(0, foreground), 1e-6));
    }
  });
}

TEST(TrainingParity, MatchesLogitsAndMaskTargets) {
  const at::NoGradGuard no_grad;
  each_golden("loss.sum", [](const GoldenRun& golden) {
    const Step step(golden);
    const auto& model = step.model;
    const auto features = model.features(step.input, step.sizes);
    const auto output =
        model.box_stages.output(features, as_rois(golden.of_images("roi.sampled_boxes")),
                                /*stage=*/0, NormMode{.training = true});
    EXPECT_TRUE(agrees(output.logits, golden, "roi.class_logits"));
    EXPECT_TRUE(agrees(output.deltas.flatten(1), golden, "roi.box_deltas"));

    std::vector<at::Tensor> foreground, targets;
    for (std::size_t i = 0; i < step.truths.size(); ++i) {
      const auto& [boxes, truth, count] = step.draws[i].regions;
      foreground.push_back(boxes.narrow(0, 0, count));
      std::vector<const coco::Segmentation*> shapes;
      for (std::int64_t row = 0; row < count; ++row)
        shapes.push_back(
            step.truths[i]
                .segmentations[static_cast<std::size_t>(truth[row].item<std::int64_t>())]);
      targets.push_back(mask_targets(
          shapes, foreground.back(), model.options.mask_head.pooler_resolution * 2,
          model.options.mask_head.target, step.truths[i].height, step.truths[i].width));
    }
    const auto all = at::cat(targets);
    EXPECT_TRUE(
        agrees(all.narrow(0, 0, golden["roi.mask_targets"].size(0)), golden, "roi.mask_targets"));
    EXPECT_TRUE(agrees(all.to(at::kDouble).sum({1, 2}), golden, "roi.mask_targets_sum"));
    const auto rois = as_rois(foreground);
    const auto every = at::arange(golden["roi.mask_logits_sum"].size(1));
    const auto logits =
        model.mask_head(features, rois, every.expand({rois.size(0), -1}), {.training = true});
    EXPECT_TRUE(agrees(logits.to(at::kDouble).sum({2, 3}), golden, "roi.mask_logits_sum"));
  });
}

TEST(TrainingParity, MatchesLossesAndGradients) {
  each_golden("loss.sum", [](const GoldenRun& golden) {
    const Step step(golden);
    const auto features = step.model.features(step.input, step.sizes, /*training=*/true);
    at::Tensor sum;
    for (const auto& [name, loss] : losses_of(step.model, features, step.truths, step.draws)) {
      EXPECT_TRUE(agrees(loss.detach(), golden, "loss." + name));
      sum = sum.defined() ? sum + loss : loss;
    }
    EXPECT_TRUE(agrees(sum.detach(), golden, "loss.sum"));
    sum.backward();

    std::size_t compared = 0;
    for (const auto& [name, value, kind, classes] : step.model.parameters) {
      if (!golden.has("grad_norm." + name)) continue;
      ASSERT_TRUE(value.grad().defined()) << name;
      const auto gradient = value.grad().contiguous();
      const auto flat = gradient.flatten();
      EXPECT_TRUE(agrees(flat.to(at::kDouble).norm(), golden, "grad_norm." + name));
      if (golden.has("grad." + name)) {
        EXPECT_TRUE(agrees(gradient, golden, "grad." + name));
      }
      if (golden.has("grad64." + name)) {
        EXPECT_TRUE(
            agrees(flat.narrow(0, 0, golden["grad64." + name].numel()), golden, "grad64." + name));
        const auto strided = flat.slice(0, 0, c10::nullopt, flat.numel() / 1024).narrow(0, 0, 1024);
        EXPECT_TRUE(agrees(strided, golden, "grad_strided." + name));
      }
      ++compared;
    }
    EXPECT_EQ(compared, golden.names("grad_norm.").size()) << "parameters with a gradient";
  });
}

}  // namespace
}  // namespace millrace::testing
