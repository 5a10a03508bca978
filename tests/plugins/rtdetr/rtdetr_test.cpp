// The detector, used through the Detector interface.
#include "millrace/plugins/rtdetr/rtdetr.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>

#include <map>

#include "millrace/models/weights/weights.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/known_counts.h"
#include "tests/models/small_batch.h"
#include "tests/plugins/rtdetr/tiny.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::rtdetr::testing {
namespace {

using millrace::NamedTensors;
using millrace::parse_config;
using millrace::testing::four_images;
using millrace::testing::message_of;
using millrace::testing::parts_of;
using millrace::testing::small_batch;
using millrace::testing::tensors_close;
using ::testing::HasSubstr;

std::unique_ptr<millrace::Detector> tiny_detector(const std::string& norm = "frozen_bn",
                                                  const std::string& more = {}) {
  const auto table =
      parse_config("backbone.type = 'resnet18'\nbackbone.width = 16\nbackbone.norm = '" + norm +
                       "'\nencoder.hidden_dim = 16\nencoder.ffn_dim = 32\nencoder.heads = 2\n"
                       "encoder.expansion = 0.5\ndecoder.hidden_dim = 16\ndecoder.ffn_dim = 32\n"
                       "decoder.heads = 2\ndecoder.layers = 2\ndecoder.num_queries = 12\n"
                       "denoising.num_queries = 8\n" +
                       more,
                   "tiny.toml");
  auto model = millrace::detectors().at("rtdetr").create(table, {{"star", "ring", "disc"}, 1});
  set_made_up_weights(model->parameters());
  model->parameters_changed();
  return model;
}

TEST(RtDetr, ReturnsSortedDetectionsInsideImage) {
  const auto model = tiny_detector();
  const auto batch = small_batch();
  const auto found = model->detect(batch);
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(found[i].size(), 36U);  // 12 queries, 3 classes
    millrace::testing::expect_inside(found[i], batch.images[i]);
    EXPECT_TRUE(
        std::ranges::is_sorted(found[i], std::ranges::greater_equal(),
                               &millrace::DetectedObject::score) ||
        std::ranges::is_sorted(found[i], std::ranges::greater(), &millrace::DetectedObject::score));
  }
}

TEST(RtDetr, RejectsSizesNotMultipleOf32) {
  auto batch = small_batch();
  batch.height = 48;
  EXPECT_THAT(message_of([&] { tiny_detector()->detect(batch); }), HasSubstr("data.divisor = 32"));
}

TEST(RtDetr, RejectsContradictoryOptions) {
  EXPECT_THAT(message_of([] { tiny_detector("bn", "decoder.offset_scale = 0.7\n"); }),
              HasSubstr("version = \"v2\""));
  EXPECT_THAT(message_of([] {
                millrace::detectors().at("rtdetr").create(
                    parse_config("encoder.heads = 3\n", "a.toml"), {{"star"}, 1});
              }),
              HasSubstr("encoder.heads"));
}

TEST(RtDetr, SavesAndLoadsWeightsByName) {
  const millrace::testing::Scratch scratch;
  const auto model = tiny_detector();
  const auto file = scratch / "model.safetensors";
  millrace::write_safetensors(file, millrace::testing::copies_of(*model));
  const auto other = tiny_detector();
  for (const auto& parameter : other->parameters()) {
    const at::NoGradGuard no_grad;
    parameter.value.zero_();
  }
  const auto report = millrace::load_weights(other->parameters(), file);
  EXPECT_EQ(report.loaded, other->parameters().size());
  EXPECT_THAT(report.unused, ::testing::IsEmpty());
  millrace::testing::expect_same(millrace::testing::copies_of(*other),
                                 millrace::testing::copies_of(*model));
}

/// Metrics and gradients after the first step; the momentum then equals the gradients.
struct AfterStep {
  std::map<std::string, double> scalars;
  NamedTensors gradients;
};

AfterStep after_step(const std::vector<millrace::Batch>& batches) {
  // Batch norm would use the statistics of one part only, so its parameters are frozen, which also
  // freezes its statistics.
  const auto model = tiny_detector();
  for (const auto& parameter : model->parameters())
    if (parameter.kind == millrace::ParameterKind::norm) parameter.value.set_requires_grad(false);
  millrace::TrainingStep step(*model, {}, {.weight_decay = 0});
  millrace::LossScale scale;
  const auto end = step(batches, {.seed = 3, .step = 11}, 0.01, scale);
  EXPECT_EQ(end.rejected, "");
  AfterStep result{{}, step.optimizer().state()};
  for (const auto& [name, value, kind] : end.scalars) result.scalars.emplace(name, value);
  return result;
}

TEST(RtDetr, MatchesWholeBatchInMicroBatches) {
  const auto whole = four_images();
  const auto expected = after_step({whole});
  EXPECT_TRUE(expected.scalars.contains("loss_vfl_dn"));
  for (const std::size_t size : {1U, 2U}) {
    SCOPED_TRACE(size);
    const auto actual = after_step(parts_of(whole, size));
    EXPECT_EQ(actual.scalars.size(), expected.scalars.size());
    for (const auto& [name, value] : actual.scalars)
      EXPECT_NEAR(value, expected.scalars.at(name), 1e-4 * (1 + std::abs(value))) << name;
    ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
    for (std::size_t i = 0; i < actual.gradients.size(); ++i) {
      const auto& [name, gradient] = actual.gradients[i];
      // 0 except for rounding, since softmax is invariant to this bias
      if (name.ends_with("k_proj.bias")) continue;
      EXPECT_TRUE(tensors_close(gradient, expected.gradients[i].second, 1e-3)) << name;
    }
  }
}

TEST(RtDetr, ReturnsSameCountsAsLosses) {
  const auto model = tiny_detector();
  for (const std::size_t size : {1U, 4U})
    for (const auto& part : parts_of(four_images(), size))
      millrace::testing::expect_known_counts(*model, part, {.seed = 3});
}

TEST(RtDetr, HasFiniteLossesWithoutObjects) {
  auto batch = small_batch();
  for (auto& objects : batch.objects) objects = {};
  const auto model = tiny_detector();
  const auto losses = model->losses(batch, {});
  EXPECT_EQ(losses.size(), 6U);
  const auto total = millrace::testing::total_of(losses);
  total.backward();
  EXPECT_TRUE(std::isfinite(total.item<double>()));
}

TEST(RtDetr, ComputesLossesFromSeedAndStep) {
  const auto model = tiny_detector();
  const auto loss = [&](std::int64_t step) {
    return millrace::testing::total_of(model->losses(small_batch(), {.seed = 3, .step = step}))
        .item<double>();
  };
  EXPECT_EQ(loss(4), loss(4));
  EXPECT_NE(loss(4), loss(5));
}

}  // namespace
}  // namespace millrace::rtdetr::testing
