// The operators on a GPU against those on the CPU; skipped without a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <optional>

#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/detector/device_tools.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/layers/convolution.h"
#include "millrace/models/maskrcnn/mask_targets.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/focal_loss.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/nms.h"
#include "millrace/models/ops/proposals.h"
#include "millrace/models/ops/roi_align.h"
#include "millrace/models/ops/sampling.h"
#include "millrace/plugins/loader.h"
#include "tests/models/operators.h"
#include "tests/plugins/cuda/on_a_gpu.h"

namespace millrace::testing {
namespace {

at::Tensor gpu(const at::Tensor& tensor) { return tensor.to(at::kCUDA); }

constexpr std::int64_t kCounts[] = {0, 1, 7, 63, 64, 65, 300, 1000, 4000};  // of boxes or regions

/// Gives the result of `work` on the GPU, on the CPU, after it was the same bytes twice.
template <typename Work>
std::vector<at::Tensor> twice_alike(Work work) {
  auto first = work();
  const auto second = work();
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(same(first[i], second[i])) << "tensor " << i << " of a second run";
    first[i] = first[i].cpu();
  }
  return first;
}

at::Tensor rois(std::int64_t count) {
  return at::cat(
      {random_values({count, 1}, 0, 2, 3).floor(), random_boxes(count, 500, 300, 4) - 40}, 1);
}

/// Three levels, pooled and weighted: the output, and the gradient of each.
std::vector<at::Tensor> pool(at::Device device, at::ScalarType type, std::int64_t channels,
                             std::int64_t count, const RoiAlignOptions& options) {
  std::vector<at::Tensor> maps;
  for (const std::int64_t side : {65, 33, 17})
    maps.push_back(random_values({2, channels, 2 * side, side}, -1, 1, 1)
                       .to(type)
                       .to(device)
                       .contiguous(at::MemoryFormat::ChannelsLast)
                       .requires_grad_());
  const auto levels = random_values({count}, 0, 3, 7).floor().to(at::kLong).to(device);
  const auto output = roi_align(maps, rois(count).to(device), levels, options);
  output.backward(random_values(output.sizes(), -1, 1, 5).to(type).to(device));
  return {output.detach(), maps[0].grad(), maps[1].grad(), maps[2].grad()};
}

TEST_F(OnAGpu, RoiAlignAndItsGradientAreTheCpus) {
  const auto compare = [](std::int64_t channels, std::int64_t count,
                          const RoiAlignOptions& options) {
    for (const auto& [type, tolerance] :
         {std::pair{at::kFloat, 1e-5}, {at::kHalf, 4e-3}, {at::kBFloat16, 3e-2}}) {
      const auto expected = pool(at::kCPU, type, channels, count, options);
      const auto found =
          twice_alike([&] { return pool(at::kCUDA, type, channels, count, options); });
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(close(found[i], expected[i], tolerance))
            << type << ", " << channels << " channels, " << count << " regions";
    }
  };
  for (const bool aligned : {false, true})
    for (const std::int64_t ratio : {0, 2}) compare(70, 300, {7, 7, 0.25, ratio, aligned});
  for (const std::int64_t channels : {1, 3, 8, 256}) compare(channels, 65, {7, 7, 0.25, 0, true});
  for (const auto count : kCounts) compare(16, count, {7, 7, 0.25, 0, true});
  compare(8, 5, {1, 3, 0.25, 0, true});
  compare(8, 5, {14, 128, 0.25, 0, true});
  EXPECT_THROW(pool(at::kCUDA, at::kFloat, 8, 1, {257, 7, 0.25, 0, true}), std::invalid_argument);
}

TEST_F(OnAGpu, NmsKeepsTheSameBoxes) {
  for (const auto count : kCounts) {
    const auto boxes = random_boxes(count, 400, 120, 1), scores = random_values({count}, 0, 1, 2);
    const auto groups = random_values({count}, 0, 9, 3).floor().to(at::kLong);
    EXPECT_TRUE(same(twice_alike([&] {
                       return std::vector{batched_nms(gpu(boxes), gpu(scores), gpu(groups), 0.5)};
                     })[0],
                     batched_nms(boxes, scores, groups, 0.5)))
        << count;
  }
}

TEST_F(OnAGpu, ProposalsAreTheCpus) {
  const std::vector<std::int64_t> counts{6000, 1500, 300, 1};
  auto logits = (random_values({2, 7801}, -5, 5, 1) * 50).round() / 50;  // with ties
  const auto deltas = random_values({2, 7801, 4}, -1, 1, 2);
  logits[0][17] = kNan, logits[1][18] = kInfinite;
  deltas[0][40].fill_(kNan);
  const auto anchors = random_boxes(7801, 500, 200, 3);
  const std::vector<std::pair<double, double>> sizes{{500, 400}, {300, 520}};
  for (const auto& options : {ProposalOptions{},
                              {.by_probability = true},
                              {.before = 7, .after = 3},
                              {.after = 1},
                              {.before = 4000, .after = 4000, .min_side = 4}}) {
    const auto expected = proposals(logits, deltas, anchors, counts, sizes, options);
    const auto found = twice_alike([&] {
      const auto all = proposals(gpu(logits), gpu(deltas), gpu(anchors), counts, sizes, options);
      return std::vector{all.boxes, all.counts};
    });
    EXPECT_TRUE(close(found[0], expected.boxes, 1e-5));
    EXPECT_TRUE(same(found[1], expected.counts));
  }
  const auto none =
      proposals(gpu(at::full_like(logits, kNan)), gpu(deltas), gpu(anchors), counts, sizes, {});
  EXPECT_TRUE(same(none.counts.cpu(), longs({0, 0})));
  EXPECT_TRUE(none.boxes.eq(0).all().item<bool>());
}

TEST_F(OnAGpu, MatchesAreTheCpus) {
  const auto compare = [](const at::Tensor& truth, const std::vector<std::int64_t>& begins,
                          const at::Tensor& boxes) {
    for (const bool low_quality : {false, true}) {
      const MatchOptions options{.low = 0.3, .high = 0.7, .low_quality = low_quality};
      const auto expected = match(truth, longs(begins), boxes, options);
      const auto found = twice_alike([&] {
        const auto all = match(gpu(truth), gpu(longs(begins)), gpu(boxes), options);
        return std::vector{all.truth, all.label};
      });
      EXPECT_TRUE(same(found[0], expected.truth));
      EXPECT_TRUE(same(found[1], expected.label));
    }
  };
  for (const auto count : kCounts)
    compare(random_boxes(40, 500, 200, 1), {0, 17, 17, 40},
            random_boxes(3 * count, 500, 200, 2).view({3, count, 4}));
  compare(random_boxes(40, 500, 200, 1), {0, 0, 40},
          random_boxes(20'001, 500, 200, 2).unsqueeze(0).expand({2, -1, -1}));
  compare(at::zeros({0, 4}), {0, 0}, random_boxes(10, 500, 200, 2).unsqueeze(0));
  const auto truth = random_boxes(4000, 500, 200, 1), boxes = random_boxes(4000, 500, 200, 2);
  const auto expected = match(truth, boxes, {.low_quality = true}),
             found = match(gpu(truth), gpu(boxes), {.low_quality = true});
  EXPECT_TRUE(same(found.truth.cpu(), expected.truth));
  EXPECT_TRUE(same(found.label.cpu(), expected.label));
}

TEST_F(OnAGpu, DrawsAreTheCpus) {
  for (const std::int64_t count : {1, 1023, 1024, 1025, 200'000}) {
    const auto labels = random_values({3, count}, -1, 2, 9).floor().to(at::kChar);
    labels[1].fill_(-1);
    const auto drawn = [&](const at::Tensor& label) {
      const auto rng = [](std::size_t image) { return Rng{5, image}; };
      const auto all = draw({lot_of(label, 256, 0.5, rng), {label, count, 0, rng}});
      return std::vector{all[0].rows,       all[0].image, all[0].slots,
                         all[0].foreground, all[1].rows,  all[1].foreground};
    };
    const auto expected = drawn(labels);
    const auto found = twice_alike([&] { return drawn(gpu(labels)); });
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(found[i], expected[i])) << i;
  }
}

TEST_F(OnAGpu, MaskTargetsAreTheCpus) {
  const std::vector<coco::Segmentation> shapes{
      std::vector<coco::Polygon>{{10, 10, 90, 20, 60, 80}, {5, 60, 30, 60, 20, 90}},
      std::vector<coco::Polygon>{{0, 0, 50, 0, 50, 50, 0, 50}}, std::vector<coco::Polygon>{}};
  for (const std::int64_t size : {1, 14, 28, 29, 64, 256})
    for (const std::int64_t count : {0, 1, 3, 400}) {
      std::vector<const coco::Segmentation*> each;
      for (std::int64_t i = 0; i < count; ++i)
        each.push_back(&shapes[static_cast<std::size_t>(i % 3)]);
      const auto boxes = random_boxes(count, 20, 70, 1);
      EXPECT_TRUE(same(twice_alike([&] {
                         return std::vector{
                             mask_targets(each, gpu(boxes), size, MaskTarget::binary, 100, 100)};
                       })[0],
                       mask_targets(each, boxes, size, MaskTarget::binary, 100, 100)))
          << count << " of " << size;
    }
}

TEST_F(OnAGpu, FocalLossAndItsGradientAreTheCpus) {
  for (const std::int64_t rows : {0, 1, 255, 5001})
    for (const double gamma : {2.0, 1.5}) {
      const auto classes = random_values({rows}, -2, 7, 2).floor().to(at::kLong);
      const auto of = [&](at::Device device) {
        const auto logits = random_values({rows, 7}, -30, 30, 1).to(device).requires_grad_();
        const auto loss = focal_loss_sum(logits, classes.to(device), {0.25, gamma});
        (loss * 3).backward();
        return std::vector{loss.detach(), logits.grad()};
      };
      const auto expected = of(at::kCPU), found = twice_alike([&] { return of(at::kCUDA); });
      for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(found[i], expected[i], 1e-5)) << rows;
    }
}

TEST_F(OnAGpu, WhatFollowsAConvolutionIsTheCpus) {
  static const auto op =
      dispatched<void(const at::Tensor&, const std::optional<at::Tensor>&,
                      const std::optional<at::Tensor>&, bool)>("millrace::finish_convolution_");
  for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16})
    for (const std::int64_t channels : {1, 3, 64, 72})
      for (const std::int64_t height : {0, 1, 13})
        for (int which = 0; which < 8; ++which) {
          const auto of = [&](at::Device device) {
            const auto values = [&](std::uint64_t seed) {
              return random_values({2, channels, height, 7}, -1, 1, seed)
                  .to(type)
                  .to(device)
                  .contiguous(at::MemoryFormat::ChannelsLast);
            };
            auto y = values(1);
            op.call(y,
                    which & 1 ? std::optional(random_values({channels}, -1, 1, 3).to(device))
                              : std::nullopt,
                    which & 2 ? std::optional(values(2)) : std::nullopt, which & 4);
            return std::vector{y};
          };
          EXPECT_TRUE(same(twice_alike([&] { return of(at::kCUDA); })[0], of(at::kCPU)[0]))
              << type << ", " << channels << " channels, " << which;
        }
}

TEST_F(OnAGpu, AConvolutionWithItsGradientIsTheCpus) {
  for (const bool add : {false, true}) {
    const auto of = [&](at::Device device) {
      const auto values = [&](at::IntArrayRef sizes, std::uint64_t seed) {
        return random_values(sizes, -1, 1, seed)
            .to(device)
            .contiguous(at::MemoryFormat::ChannelsLast)
            .requires_grad_();
      };
      const auto x = values({2, 8, 9, 11}, 1), weight = values({16, 8, 3, 3}, 2),
                 more = values({2, 16, 5, 6}, 3);
      const auto scale = random_values({16}, 0.5, 2, 4).to(device);
      const auto bias = random_values({16}, -1, 1, 5).to(device).requires_grad_();
      const auto y = convolve(x, {weight, scale, bias, 2, 1},
                              {.add = add ? more : at::Tensor(), .activation = Activation::relu});
      y.backward(random_values(y.sizes(), -1, 1, 6).to(device));
      return std::vector{y.detach(), x.grad(), weight.grad(), bias.grad()};
    };
    const auto expected = of(at::kCPU), found = twice_alike([&] { return of(at::kCUDA); });
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(close(found[i], expected[i], 3e-3)) << i;  // TF32 has 10 bits
  }
}

TEST_F(OnAGpu, NormalizedPixelsHaveTheCpusBits) {
  for (const int images : {1, 3, 70}) {  // more than one launch takes
    Batch batch{.height = 33, .width = 47};
    for (int i = 0; i < images; ++i)
      batch.images.push_back({.width = 47 - i % 5, .height = 33 - i % 7});
    batch.pixels.reset(new std::uint8_t[batch.bytes()]);
    for (std::size_t i = 0; i < batch.bytes(); ++i)
      batch.pixels[i] = static_cast<std::uint8_t>(i * 7 % 251);
    for (const auto type : {at::kFloat, at::kHalf, at::kBFloat16})
      for (const auto order : {ChannelOrder::bgr, ChannelOrder::rgb}) {
        const PixelOptions options{.pixel_order = order, .pixel_std = {57.1, 58.2, 59.3}};
        const auto expected = normalize(batch, options, at::kCPU, {64, 64}).to(type);
        const auto found = twice_alike([&] {
          const ComputeIn precision(type, at::kCUDA);
          return std::vector{normalize(batch, options, at::kCUDA, {64, 64})};
        });
        EXPECT_TRUE(same(found[0], expected)) << type << " " << value_name(order);
      }
  }
}

// What `trainer check-gpu` asks of the plug-in.
TEST_F(OnAGpu, WorkIsRecordedAsAGraphThatReadsTheSameMemoryEachTime) {
  const auto tools = device_tools().at("cuda").create();
  const auto in = gpu(at::ones({1000})), out = gpu(at::zeros({1000}));
  const auto graph = tools->recorded([&] { out.copy_(in * 2); });
  in.fill_(3);
  graph();
  EXPECT_TRUE(same(out.cpu(), at::full({1000}, 6.F)));
  EXPECT_FALSE(tools->facts().empty());
}

TEST_F(OnAGpu, ASumOverOneGpuChangesNothing) {
  const auto values = gpu(random_values({100000}, -1, 1, 1));
  const auto before = values.clone();
  EXPECT_THAT(device_tools().at("cuda").create()->sum_alone(values), ::testing::HasSubstr("NCCL"));
  EXPECT_TRUE(same(values, before));
}

}  // namespace
}  // namespace millrace::testing
