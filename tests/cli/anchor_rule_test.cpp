// Compares the anchor rule read from a configuration with the anchors that the detectors generate
// and match.
#include "millrace/cli/detector_rules.h"

#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "millrace/base/random.h"
#include "millrace/models/layers/anchors.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/matcher.h"
#include "tests/models/operators.h"

namespace millrace::cli {
namespace {

/// Returns data with one image that has these boxes and one image without objects.
SeenData data_of(const at::Tensor& boxes, cv::Size size) {
  SeenData data{.classes = {"one"}};
  Instances objects;
  for (std::int64_t i = 0; i < boxes.size(0); ++i) {
    const auto* side = boxes[i].const_data_ptr<float>();
    objects.boxes.push_back({side[0], side[1], side[2], side[3]});
    objects.classes.push_back(0);
    objects.crowd.push_back(0);
    objects.segmentations.emplace_back();
  }
  add_image(data, {.original = size, .seen = size}, objects);
  add_image(data, {.original = size, .seen = size}, {});
  return data;
}

/// Expects the coverage to equal the matches found by the detectors' own matcher and anchors.
void expect_as_matched(const std::string& type, const std::string& toml,
                       const PyramidAnchors& anchors, std::int64_t first_stride,
                       const MatchOptions& matching) {
  const auto rule = anchor_rule(type, parse_config(toml, "test"), 32);
  ASSERT_TRUE(rule);
  const AnchorGrids grids(anchors, first_stride);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const std::int64_t height = 96 + 32 * static_cast<std::int64_t>(seed), width = 352;
    std::vector<at::Tensor> maps;
    auto h = height, w = width;
    for (std::int64_t stride = 1; stride < first_stride << 5; stride *= 2) {
      if (stride >= first_stride) maps.push_back(at::zeros({1, 1, h, w}));
      h = (h + 1) / 2, w = (w + 1) / 2;
    }
    const auto all = grids(maps, {height, width}).anchors;
    const auto truth = testing::random_boxes(12, 90, 120, seed);
    const auto data = data_of(truth, {static_cast<int>(width) - 5, static_cast<int>(height) - 31});
    const auto coverage = anchor_coverage(data, *rule);
    const auto [best, label] = match(truth, all, matching);
    const auto overlaps = box_iou(truth, all, matching.offset);
    for (std::int64_t g = 0; g < truth.size(0); ++g) {
      const auto& found = coverage[static_cast<std::size_t>(g)];
      EXPECT_EQ(found.best_iou, overlaps[g].max().item<float>()) << type << " " << toml;
      const auto own = (best == g) & (label == 1);
      const auto expected = !own.any().item<bool>() ? MatchKind::nothing
                            : (own & (overlaps[g] >= matching.fg_iou_thresh)).any().item<bool>()
                                ? MatchKind::foreground
                                : MatchKind::low_quality;
      EXPECT_EQ(found.match, expected) << type << " " << toml;
    }
  }
}

TEST(AnchorRule, MatchesDetectors) {
  for (const auto* type : {"maskrcnn", "fasterrcnn", "cascadercnn"}) {
    expect_as_matched(type, "", {}, 4,
                      {.bg_iou_thresh = .3, .fg_iou_thresh = .7, .low_quality = true});
    PyramidAnchors torchvision;
    torchvision.use_torchvision();
    expect_as_matched(type, "style = 'torchvision'", torchvision, 4,
                      {.bg_iou_thresh = .3, .fg_iou_thresh = .7, .low_quality = true});
  }
  expect_as_matched("maskrcnn",
                    "anchors.sizes = [8, 24, 64, 100, 300]\nanchors.aspect_ratios = [0.3, 1]\n"
                    "anchors.rounding = 'legacy'\nboxes.offset = 1\nrpn.fg_iou_thresh = 0.6",
                    {.sizes = {8, 24, 64, 100, 300},
                     .aspect_ratios = {.3, 1},
                     .rounding = AnchorRounding::legacy},
                    4,
                    {.bg_iou_thresh = .3, .fg_iou_thresh = .6, .low_quality = true, .offset = 1});
  expect_as_matched("retinanet", "", {.scales_per_octave = 3}, 8,
                    {.bg_iou_thresh = .4, .fg_iou_thresh = .5, .low_quality = true});
  PyramidAnchors torchvision{.scales_per_octave = 3};
  torchvision.use_torchvision();
  expect_as_matched("retinanet", "style = 'torchvision'", torchvision, 8,
                    {.bg_iou_thresh = .4, .fg_iou_thresh = .5, .low_quality = true});
}

TEST(AnchorRule, AppliesSizesOnlyForKnownDetectors) {
  const auto rule = anchor_rule("maskrcnn", parse_config("", "test"), 32, {8, 16, 32, 64, 128});
  ASSERT_TRUE(rule);
  EXPECT_EQ(rule->levels[0].cells[1], (Box{-4, -4, 4, 4}));
  EXPECT_FALSE(anchor_rule("mine", parse_config("", "test"), 32));
  EXPECT_EQ(numbers(parse_config("anchors.sizes = [8, 16.5]", "test"), "anchors.sizes"),
            (std::vector<double>{8, 16.5}));
  EXPECT_TRUE(numbers(parse_config("", "test"), "anchors.sizes").empty());
}

}  // namespace
}  // namespace millrace::cli
