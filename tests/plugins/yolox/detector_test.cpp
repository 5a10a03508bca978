#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "millrace/models/detector/loss_sums.h"
#include "millrace/models/onnx/detection.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/step_totals.h"
#include "tests/models/small_batch.h"
#include "tests/plugins/yolox/reference.h"
#include "tests/support/thrown.h"

namespace millrace::yolox {
namespace {

using testing::small_batch;

double sum(const Losses& losses) {
  double all = 0;
  for (const auto& [name, loss] : losses) all += loss.item<double>();
  return all;
}

/// Returns a batch of only image `i`, still padded to the size of `batch`.
Batch image_of(const Batch& batch, std::size_t i) {
  auto one = batch;
  one.images = {batch.images[i]};
  one.objects = {batch.objects[i]};
  one.pixels = std::shared_ptr<std::uint8_t[]>(
      batch.pixels, batch.pixels.get() + i * batch.bytes() / batch.size());
  return one;
}

TEST(Yolox, LearnsBackgroundWithoutObjects) {
  auto batch = small_batch();
  batch.objects = {{}, {}};
  const auto losses = by_formula("plain")->losses(batch, {});
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses[0].second.item<double>(), 0);
  EXPECT_GT(losses[1].second.item<double>(), 0);
  EXPECT_EQ(losses[2].second.item<double>(), 0);
  EXPECT_THROW(
      by_formula("plain")->check_training({.count_objects = [] { return ObjectCounts{}; }}),
      ConfigError);
}

TEST(Yolox, AddsUpLossesOfParts) {
  const auto batch = small_batch();
  const auto model = by_formula("plain");
  const StepInfo step{.without_training = true};  // uses running statistics without changing them
  const auto whole = sum(model->losses(batch, step));
  const std::vector<LossSums> parts{model->loss_sums(image_of(batch, 0), step),
                                    model->loss_sums(image_of(batch, 1), step)};
  StepTotals totals(Cluster::alone());
  totals.complete({counts_of(parts[0]), counts_of(parts[1])});
  EXPECT_NEAR(sum(totals.means(parts[0])) + sum(totals.means(parts[1])), whole, 1e-4 * whole);
}

TEST(Yolox, ChangesSizeEveryTenSteps) {
  auto options = options_of("plain");
  options.random_size = {1, 3};
  Yolox model(options, {.classes = {"star", "ring", "disc"}});
  std::set<double> seen;
  for (std::int64_t tens = 0; tens < 12; ++tens) {
    const auto first = sum(model.losses(small_batch(), {.step = 10 * tens}));
    EXPECT_EQ(sum(model.losses(small_batch(), {.step = 10 * tens + 9})), first);
    seen.insert(first);
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(Yolox, ReturnsBoxesInOriginalPixels) {
  // The second image is smaller than the batch. Its padding must be treated as grey pixels (114).
  const auto batch = small_batch();
  const auto model = by_formula("plain");
  const auto found = model->detect(batch);
  ASSERT_EQ(found.size(), 2U);
  auto grey = batch;
  grey.pixels.reset(new std::uint8_t[batch.bytes()]);
  std::copy_n(batch.pixels.get(), batch.bytes(), grey.pixels.get());
  for (std::int32_t y = 0; y < 64; ++y)
    for (std::int32_t x = 0; x < 96; ++x)
      if (x >= 80 || y >= 60)
        std::fill_n(grey.pixels.get() + ((64 + y) * 96 + x) * 3, 3, std::uint8_t{114});
  grey.images[1].width = 96;
  grey.images[1].height = 64;
  const auto same = model->detect(grey);
  ASSERT_EQ(found[1].size(), same[1].size());
  ASSERT_FALSE(found[1].empty());
  for (std::size_t d = 0; d < same[1].size(); ++d) {
    EXPECT_EQ(found[1][d].score, same[1][d].score);
    EXPECT_EQ(found[1][d].box, same[1][d].box);
    EXPECT_GE(found[1][d].box.x1, 0);
    EXPECT_LE(found[1][d].box.x2, 160);
  }
}

TEST(Yolox, ReturnsUnclippedBoxesIfScaledUniformly) {
  constexpr float kLarger = 0.5F, kCut = 0.495F;
  auto batch = small_batch();
  for (auto& image : batch.images) image.scale_y = kCut;
  const auto exact = by_formula("plain")->detect(batch);
  const auto uniform = by_formula("plain", {.boxes = BoxScaling::uniform})->detect(batch);
  bool reaches_out = false;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto width = static_cast<float>(batch.images[i].original_width),
               height = static_cast<float>(batch.images[i].original_height);
    ASSERT_EQ(uniform[i].size(), exact[i].size());
    for (std::size_t d = 0; d < exact[i].size(); ++d) {
      const auto &one = uniform[i][d].box, &other = exact[i][d].box;
      EXPECT_NEAR(std::clamp(one.x1, 0.F, width), other.x1, 1e-3);
      EXPECT_NEAR(std::clamp(one.y2 * kLarger / kCut, 0.F, height), other.y2, 1e-3);
      reaches_out |= one.x1 < 0 || one.x2 > width;
    }
  }
  EXPECT_TRUE(reaches_out);
}

TEST(Yolox, LimitsNumberOfDetections) {
  EXPECT_EQ(by_formula("plain", {.detections_per_img = 7})->detect(small_batch())[0].size(), 7U);
}

TEST(Yolox, MatchesPublishedParameterCounts) {
  const auto millions = [](const std::string& size) {
    const auto table = parse_config("size = '" + size + "'", "test");
    const Yolox model(read_options<YoloxOptions>(table),
                      {.classes = std::vector<std::string>(80), .awaits_weights = true});
    return static_cast<double>(model.parameters().trainable_count()) / 1e6;
  };
  EXPECT_NEAR(millions("nano"), 0.91, 0.005);
  EXPECT_NEAR(millions("tiny"), 5.06, 0.005);
  EXPECT_NEAR(millions("s"), 8.97, 0.01);
  EXPECT_NEAR(millions("m"), 25.3, 0.05);
  EXPECT_NEAR(millions("l"), 54.2, 0.05);
  EXPECT_NEAR(millions("x"), 99.1, 0.05);
}

TEST(Yolox, RejectsInvalidRandomSize) {
  for (const auto* range : {"[20]", "[26, 14]"})
    EXPECT_THAT(
        testing::message_of([&] {
          read_options<YoloxOptions>(parse_config(std::string("random_size = ") + range, "test"));
        }),
        ::testing::HasSubstr("random_size"));
}

TEST(Yolox, ExportsToOnnxGraph) {
  const auto model = by_formula("depthwise");
  onnx::Graph graph(model->parameters());
  const onnx::Images images{graph.input("pixels", onnx::Type::u8, {"n", "h", "w", 3}, ""),
                            graph.input("sizes", onnx::Type::i64, {"n", 2}, ""),
                            graph.input("scales", onnx::Type::f32, {"n", 2}, ""),
                            graph.input("originals", onnx::Type::i64, {"n", 2}, "")};
  const auto objects = model->add_to(images, false);
  graph.output("boxes", objects.boxes, {"d", 4}, "");
  graph.output("scores", objects.scores, {"d"}, "");
  graph.output("labels", objects.labels, {"d"}, "");
  EXPECT_TRUE(objects.boxes.defined() && objects.scores.defined() && objects.labels.defined() &&
              objects.images.defined());
  EXPECT_FALSE(objects.masks.defined());
}

}  // namespace
}  // namespace millrace::yolox
