#include "millrace/models/ops/proposals.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "millrace/models/ops/nms.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

/// Outputs of an RPN for three images of different sizes.
struct Scene {
  std::vector<std::int64_t> counts = {9000, 2250, 560, 7, 1};
  std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  std::vector<std::pair<double, double>> sizes = {{300, 400}, {280, 333}, {41, 400}};
  at::Tensor anchors = random_boxes(total, 380, 90, 1) - 20;
  at::Tensor logits = (random_values({3, total}, -4, 2, 3) * 100).round() / 100;  // with ties
  at::Tensor deltas = random_values({3, total, 4}, -1, 1, 4);

  std::vector<at::Tensor> proposals(const ProposalOptions& options) const {
    return millrace::proposals(logits, deltas, anchors, counts, sizes, options).each();
  }
};

/// Selects proposals by the definition, with one tensor operation per step.
at::Tensor by_definition(const Scene& scene, std::int64_t image, const ProposalOptions& options) {
  std::vector<at::Tensor> indices, levels;
  std::int64_t first = 0;
  for (const auto count : scene.counts) {
    const auto order =
        std::get<1>(scene.logits[image].narrow(0, first, count).sort(/*stable=*/true, 0, true));
    indices.push_back(order.slice(0, 0, options.before) + first);
    levels.push_back(at::full({indices.back().numel()}, std::ssize(levels), at::kLong));
    first += count;
  }
  const auto index = at::cat(indices);
  const auto [height, width] = scene.sizes[static_cast<std::size_t>(image)];
  auto boxes = options.coder.decode(scene.anchors.index_select(0, index),
                                    scene.deltas[image].index_select(0, index));
  boxes = clip_boxes(boxes, height, width);
  const auto sides = boxes.slice(1, 2) - boxes.slice(1, 0, 2);
  const auto good = (options.min_side > 0 ? sides >= options.min_side : sides > 0).all(1);
  const auto kept = good.nonzero().squeeze(1);
  boxes = boxes.index_select(0, kept);
  auto scores = scene.logits[image].index_select(0, index).index_select(0, kept);
  if (options.by_probability) scores = scores.sigmoid();
  const auto best = batched_nms(boxes, scores, at::cat(levels).index_select(0, kept),
                                options.threshold, options.coder.offset);
  return boxes.index_select(0, best.slice(0, 0, options.after));
}

TEST(Proposals, MatchDefinitionByteForByte) {
  const Scene scene;
  const std::vector<ProposalOptions> cases = {
      {},
      {.before = 2000, .after = 2000, .threshold = 0.5},
      {.before = 100, .after = 50},
      {.min_side = 20},
      {.by_probability = true},
      {.coder = {.weights = {10, 10, 5, 5}, .offset = 1}},
      {.threshold = 0, .coder = {.max_log_scale = 0.3}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto all = scene.proposals(cases[i]);
    ASSERT_EQ(all.size(), 3U);
    for (std::int64_t image = 0; image < 3; ++image) {
      const auto& ours = all[static_cast<std::size_t>(image)];
      EXPECT_GT(ours.size(0), 10);
      EXPECT_TRUE(tensors_equal(ours, by_definition(scene, image, cases[i])))
          << "case " << i << ", image " << image;
    }
  }
}

TEST(Proposals, DoNotDependOnOtherImages) {
  Scene scene;
  const auto all = scene.proposals({});
  scene.logits = scene.logits.roll({1}, {0});
  scene.deltas = scene.deltas.roll({1}, {0});
  std::ranges::rotate(scene.sizes, scene.sizes.begin() + 2);
  const auto moved = scene.proposals({});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(tensors_equal(moved[(i + 1) % 3], all[i]));
}

TEST(Proposals, DoNotDependOnThreadCount) {
  const Scene scene;
  expect_same_on_any_threads([&] { return scene.proposals({.by_probability = true}); });
}

TEST(Proposals, SkipNonFiniteBoxes) {
  Scene scene;
  const auto best = scene.logits.argmax(1);
  for (const float odd : {kNan, kInfinite, -kInfinite}) {
    for (std::int64_t image = 0; image < 3; ++image)
      scene.logits[image][best[image].item<std::int64_t>()] = odd;
    scene.deltas.slice(1, 0, 8000, 2).fill_(odd);
    for (const auto& boxes : scene.proposals({})) {
      EXPECT_GT(boxes.size(0), 10);
      EXPECT_TRUE(at::isfinite(boxes).all().item<bool>());
    }
  }
}

TEST(Proposals, AreEmptyIfNoValueIsFinite) {
  Scene scene;
  const auto expect_none = [&] {
    for (const auto& boxes : scene.proposals({}))
      EXPECT_TRUE(tensors_equal(boxes, at::zeros({0, 4})));
  };
  const auto logits = scene.logits;
  scene.logits = at::full_like(logits, kNan);
  expect_none();
  scene.logits = logits;
  scene.deltas.fill_(kNan);
  expect_none();
}

TEST(Proposals, SkipBoxesOutsideImage) {
  Scene scene;
  scene.anchors += 2000;
  for (const auto& boxes : scene.proposals({})) EXPECT_EQ(boxes.size(0), 0);
}

TEST(Proposals, AcceptThinAndEmptyImages) {
  Scene scene;
  scene.sizes = {{10'000, 20}, {1, 1}, {0, 0}};
  const auto all = scene.proposals({});
  EXPECT_GT(all[0].size(0), 0);
  EXPECT_LE(all[1].slice(1, 2).max().item<float>(), 1);
  EXPECT_EQ(all[2].size(0), 0);
}

TEST(Proposals, ConvertHalfPrecisionToFloat) {
  Scene scene;
  const auto as = [&](at::ScalarType type) {
    scene.logits = scene.logits.to(type);
    scene.deltas = scene.deltas.to(type);
    return scene.proposals({});
  };
  const auto narrow = as(at::kBFloat16), wide = as(at::kFloat);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(tensors_equal(narrow[i], wide[i]));
}

TEST(Proposals, RejectShapeMismatch) {
  Scene scene;
  scene.counts.back() = 2;
  EXPECT_THROW(scene.proposals({}), std::invalid_argument);
  scene.counts.back() = 1;
  scene.sizes.pop_back();
  EXPECT_THROW(scene.proposals({}), std::invalid_argument);
}

}  // namespace
}  // namespace millrace::testing
