// Compares inference with torchvision's recordings, stage by stage. The input of each stage is the
// recorded output of the stage before it. Discrete results must be equal; continuous results may
// differ by the rounding that was measured for the recording.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "millrace/coco/masks/masks.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/layers/results.h"
#include "millrace/models/ops/top_k.h"
#include "tests/parity/golden_model.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

class InferenceParity : public ::testing::Test {
 private:
  const at::NoGradGuard no_grad_;
};

/// Compares the recorded channels of a map, and the sums of all channels.
void expect_map(const at::Tensor& map, const GoldenRun& golden, const std::string& name) {
  const auto all = map.to(at::kDouble);
  EXPECT_TRUE(agrees(map.index_select(1, golden[name + ".chan"]), golden, name + ".sub"));
  EXPECT_TRUE(agrees(all.sum({2, 3}), golden, name + ".sum"));
  if (golden.has(name + ".abs")) {
    EXPECT_TRUE(agrees(all.abs().sum({2, 3}), golden, name + ".abs"));
  }
}

/// Returns the recorded photos as the data flow would batch them.
Batch batch_of(const GoldenRun& golden) {
  const ResizeShortestEdge resize{.short_side = {golden.count("min_size")},
                                  .max_side = golden.count("max_size"),
                                  .style = ResizeStyle::torchvision};
  std::vector<Sample> samples;
  for (const auto& image : golden.of_images("in.image")) {
    Rng rng{1};
    Sample sample;
    sample.width = static_cast<std::int32_t>(image.size(1));
    sample.height = static_cast<std::int32_t>(image.size(0));
    sample.image =
        cv::Mat(sample.height, sample.width, CV_8UC3, image.contiguous().data_ptr<std::uint8_t>())
            .clone();
    samples.push_back(resize(std::move(sample), rng));
  }
  return Pad{}(std::move(samples));
}

TEST_F(InferenceParity, MatchesParameterNamesAndValues) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    if (golden.argument("model") != "r50" || golden.count("num_classes") != 91 ||
        golden.count("weight_seed") != 1)
      return;  // the expected values are from the goldens' README
    const GoldenModel model(golden);
    const auto sum = [&](const char* name) {
      return model.parameters.find(name)->value.to(at::kDouble).sum().item<double>();
    };
    EXPECT_EQ(model.parameters.size(), 307U);
    EXPECT_EQ(model.parameters.count(), 44'507'633);
    EXPECT_NEAR(sum("backbone.body.conv1.weight"), 14.001398033587, 1e-6);
    EXPECT_NEAR(sum("roi_heads.box_head.fc6.weight"), 57.059520863199, 1e-5);
  });
}

TEST_F(InferenceParity, MatchesNetworkInput) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const auto batch = batch_of(golden);
    auto sizes = golden["in.image_sizes"].clone();
    bool resized = false;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      sizes[static_cast<std::int64_t>(i)][0] = batch.images[i].height;
      sizes[static_cast<std::int64_t>(i)][1] = batch.images[i].width;
      resized = resized || batch.images[i].height != batch.images[i].original_height;
    }
    EXPECT_TRUE(tensors_equal(sizes, golden["in.image_sizes"]));

    const auto input = normalize(batch, options_of(golden).pyramid);
    ASSERT_EQ(input.sizes(), golden["in.batch"].sizes());
    if (resized)  // ours are rounded to integers, which are about 1/255 / 0.225 apart
      EXPECT_LT((input - golden["in.batch"]).abs().max().item<double>(), 1 / 57.0);
    else
      EXPECT_TRUE(agrees(input, golden, "in.batch"));
  });
}

TEST_F(InferenceParity, MatchesBackboneAndPyramid) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const GoldenModel model(golden);
    const auto c = model.body(golden["in.batch"], {});
    const auto p = model.fpn(c, {});
    for (std::size_t i = 0; i < c.size(); ++i)
      expect_map(c[i], golden, "body.C" + std::to_string(i + 2));
    for (std::size_t i = 0; i < p.size(); ++i)
      expect_map(p[i], golden, "fpn.P" + std::to_string(i + 2));
  });
}

TEST_F(InferenceParity, MatchesAnchorsLogitsAndDeltas) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const GoldenModel model(golden);
    const auto output = model.rpn(model.features(golden["in.batch"], golden["in.image_sizes"]));
    EXPECT_TRUE(tensors_equal(output.anchors, golden["rpn.anchors"]));
    EXPECT_TRUE(
        tensors_equal(at::tensor(output.level_counts, at::kLong), golden["rpn.anchors_per_level"]));
    EXPECT_TRUE(agrees(output.logits, golden, "rpn.logits"));
    EXPECT_TRUE(agrees(output.deltas, golden, "rpn.deltas"));
  });
}

TEST_F(InferenceParity, MatchesBestLogitsOfEachLevel) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const auto rpn = recorded_rpn(golden);
    const auto before = options_of(golden).rpn.pre_nms_top_n_test;
    const auto& expected = golden["rpn.topk_idx"];
    for (std::int64_t i = 0; i < expected.size(0); ++i) {
      std::vector<std::int64_t> best;
      const auto* logits = rpn.logits[i].data_ptr<float>();
      std::int64_t first = 0;
      for (const auto count : rpn.level_counts) {
        for (const auto index : top_k({logits + first, static_cast<std::size_t>(count)}, before))
          best.push_back(first + index);
        first += count;
      }
      // Logits that are equal except for torchvision's own rounding may swap.
      const auto ranked = rpn.logits[i].index_select(0, at::tensor(best, at::kLong)),
                 theirs = rpn.logits[i].index_select(0, expected[i].to(at::kLong));
      EXPECT_LE((ranked - theirs).abs().max().item<double>(), golden.tolerance("rpn.logits"));
    }
  });
}

TEST_F(InferenceParity, MatchesProposalsFromRecordedLogits) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const auto ours = proposals_of(golden, options_of(golden), false);
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_TRUE(same_boxes(ours[i], golden["rpn.proposals" + std::to_string(i)]));
  });
}

TEST_F(InferenceParity, MatchesLevelsFeaturesAndBoxes) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const GoldenModel model(golden);
    const auto& pool = model.options.pool;
    const auto features = model.features(golden["in.batch"], golden["in.image_sizes"]);
    const auto rois = as_rois(golden.of_images("rpn.proposals")),
               kept = rois.index_select(0, golden["roi.first_idx"]);
    EXPECT_TRUE(tensors_equal(region_levels(rois.narrow(1, 1, 4), pool) - 2, golden["roi.levels"]));
    const auto pooled = [&](std::int64_t size) {
      return RegionPooler(pool)(features.maps, kept, size, NormMode{});
    };
    const auto of_boxes = pooled(model.options.box_stages.head.pooler_resolution);
    expect_map(of_boxes, golden, "roi.box_feats");
    expect_map(pooled(model.options.mask_head.pooler_resolution), golden, "roi.mask_feats");
    EXPECT_TRUE(agrees(model.box_stages.head(0).hidden(of_boxes, {}), golden, "roi.fc7"));

    const auto output = model.box_stages.output(features, rois, /*stage=*/0, NormMode{});
    EXPECT_TRUE(agrees(output.logits, golden, "roi.class_logits"));
    EXPECT_TRUE(agrees(output.deltas.flatten(1), golden, "roi.box_deltas"));
  });
}

TEST_F(InferenceParity, MatchesDetectionsFromRecordedLogits) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const GoldenModel model(golden);
    const auto sizes = image_sizes(golden["in.image_sizes"]);
    const auto proposals = golden.of_images("rpn.proposals");
    const auto classes = golden.count("num_classes");
    std::int64_t first = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto count = proposals[i].size(0);
      const BoxHead::Output output{
          golden["roi.class_logits"].narrow(0, first, count),
          golden["roi.box_deltas"].narrow(0, first, count).view({-1, classes, 4})};
      first += count;
      const auto& detection = model.options.detection;
      const auto found =
          best_detections(model.box_stages.candidates(model.box_stages.head(0).scores(output),
                                                      output.deltas, proposals[i], detection),
                          sizes[i], model.options.boxes.offset, detection);
      const auto det = "det" + std::to_string(i);
      EXPECT_TRUE(tensors_equal(found.labels + 1, golden[det + ".labels"]));
      EXPECT_TRUE(agrees(found.scores, golden, det + ".scores"));
      EXPECT_TRUE(agrees(found.boxes, golden, det + ".boxes_net"));
    }
  });
}

TEST_F(InferenceParity, MatchesMaskProbabilities) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const GoldenModel model(golden);
    const auto features = model.features(golden["in.batch"], golden["in.image_sizes"]);
    const auto masks = model.mask_head.detect(features, golden.of_images("det", ".boxes_net"),
                                              at::cat(golden.of_images("det", ".labels")) - 1);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < features.sizes.size(); ++i) {
      const auto name = "det" + std::to_string(i) + ".mask28";
      const auto count = golden[name].size(0);
      EXPECT_TRUE(agrees(masks.narrow(0, first, count), golden, name));
      first += count;
    }
  });
}

TEST_F(InferenceParity, MatchesRunLengthsOfPastedMasks) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const auto images = golden.of_images("in.image");
    for (std::size_t i = 0; i < images.size(); ++i) {
      const auto det = "det" + std::to_string(i);
      const auto masks = golden[det + ".mask28"];
      const auto* box = golden[det + ".boxes"].data_ptr<float>();
      const auto* counts = golden[det + ".rle_counts"].data_ptr<std::int32_t>();
      const auto* offset = golden[det + ".rle_offsets"].data_ptr<std::int32_t>();
      for (std::int64_t d = 0; d < masks.size(0); ++d, box += 4, ++offset) {
        const auto mask = paste_mask(MaskPaste::padded, masks[d].data_ptr<float>(), masks.size(-1),
                                     {box[0], box[1], box[2], box[3]},
                                     static_cast<std::uint32_t>(images[i].size(0)),
                                     static_cast<std::uint32_t>(images[i].size(1)));
        const std::vector<std::uint32_t> expected(counts + offset[0], counts + offset[1]);
        EXPECT_EQ(mask.counts, expected) << det << ", detection " << d;
        EXPECT_EQ(coco::area(mask),
                  static_cast<std::uint64_t>(golden[det + ".area"][d].item<std::int64_t>()));
      }
    }
  });
}

/// Returns the number of boxes in `a` that can be paired one-to-one with boxes of the same label
/// and an IoU above 0.9.
std::int64_t matched(const Found& a, const at::Tensor& boxes, const at::Tensor& labels) {
  const auto alike =
      (box_iou(a.boxes, boxes) > 0.9).logical_and(a.labels.unsqueeze(1) == labels.unsqueeze(0));
  std::vector<bool> taken(static_cast<std::size_t>(boxes.size(0)));
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < alike.size(0); ++i)
    for (std::int64_t j = 0; j < alike.size(1); ++j)
      if (!taken[static_cast<std::size_t>(j)] && alike[i][j].item<bool>()) {
        taken[static_cast<std::size_t>(j)] = true;
        ++count;
        break;
      }
  return count;
}

TEST_F(InferenceParity, MatchesDetectionsEndToEnd) {
  each_golden("in.batch", [](const GoldenRun& golden) {
    const GoldenModel model(golden);
    const auto features = model.features(golden["in.batch"], golden["in.image_sizes"]);
    const auto rpn = model.rpn(features);
    const auto proposals = model.rpn.proposals(rpn, features.sizes, /*training=*/false);
    const auto found = model.box_stages.detect(features, proposals.each(), model.options.detection);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto det = "det" + std::to_string(i);
      const auto count = golden[det + ".labels"].size(0);
      EXPECT_EQ(found[i].labels.size(0), count);
      EXPECT_EQ(matched(found[i], golden[det + ".boxes_net"], golden[det + ".labels"] - 1), count);
      EXPECT_TRUE(tensors_close(std::get<0>(found[i].scores.sort()),
                                std::get<0>(golden[det + ".scores"].sort()), 1e-4));
    }
  });
}

}  // namespace
}  // namespace millrace::testing
