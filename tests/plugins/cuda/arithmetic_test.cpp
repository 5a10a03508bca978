// Runs the arithmetic of the GPU kernels on the host and compares it with the CPU operators.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <random>

#include "millrace/coco/masks/masks.h"
#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/dispatched.h"
#include "millrace/models/ops/focal_loss.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/roi_align.h"
#include "millrace/models/ops/top_k.h"
#include "millrace/plugins/cuda/boxes.h"
#include "millrace/plugins/cuda/finish.h"
#include "millrace/plugins/cuda/focal_loss.h"
#include "millrace/plugins/cuda/mask_targets.h"
#include "millrace/plugins/cuda/normalize.h"
#include "millrace/plugins/cuda/roi_align.h"
#include "millrace/plugins/cuda/sampling.h"
#include "tests/coco/random_masks.h"
#include "tests/models/operators.h"

namespace millrace::cuda {
namespace {

using millrace::testing::kInfinite;
using millrace::testing::kNan;
using millrace::testing::longs;
using millrace::testing::random_boxes;
using millrace::testing::random_values;
using millrace::testing::tensors_close;
using millrace::testing::tensors_equal;

constexpr int kImages = 2, kChannels = 3, kHeight = 20, kWidth = 24;
constexpr float kScale = 0.25F;

/// Returns regions inside and around the map; the first region is empty.
at::Tensor some_rois() {
  const auto image = random_values({40, 1}, 0, kImages, 3).floor();
  const auto boxes = random_boxes(40, 100, 60, 4) - 20;
  auto rois = at::cat({image, boxes}, 1);
  rois[0].narrow(0, 3, 2).copy_(rois[0].narrow(0, 1, 2));
  return rois;
}

class RoiAlignArithmetic : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  RoiAlignSwitches switches_{5, 5, std::get<0>(GetParam()), std::get<1>(GetParam())};
  RoiAlignOptions options_{5, 5, kScale, std::get<0>(GetParam()), std::get<1>(GetParam())};
  at::Tensor rois_ = some_rois();
  at::Tensor levels_ = at::zeros({40}, at::kLong);
  Regions regions_{rois_.const_data_ptr<float>(), levels_.const_data_ptr<std::int64_t>(), 40};

  template <typename T>
  static Pyramid<T> one_level(T* map) {
    return {{map}, {kHeight}, {kWidth}, {kScale}, 1, kImages, kChannels};
  }
};

TEST_P(RoiAlignArithmetic, MatchesCpu) {
  const auto features = random_values({kImages, kChannels, kHeight, kWidth}, -1, 1, 1);
  const auto map = features.permute({0, 2, 3, 1}).contiguous();
  const auto pyramid = one_level(map.const_data_ptr<float>());
  auto output = at::empty({40, kChannels, 5, 5});
  auto* out = output.mutable_data_ptr<float>();
  for (int r = 0; r < 40; ++r) {
    const SampledRegion region(pyramid, regions_, r, switches_);
    for (int c = 0; c < kChannels; ++c)
      for (int cell = 0; cell < 25; ++cell)
        roi_cell<1>(pyramid, region, cell / 5, cell % 5, c, out++);
  }
  EXPECT_TRUE(tensors_close(output, roi_align(features, rois_, {}, options_), 1e-6));
}

TEST_P(RoiAlignArithmetic, MatchesSingleChannels) {
  constexpr int kTogether = 4, kMany = 2 * kTogether;
  const auto map = random_values({kImages, kHeight, kWidth, kMany}, -1, 1, 1);
  auto pyramid = one_level(map.const_data_ptr<float>());
  pyramid.channels = kMany;
  const auto gradient = random_values({5, 5, kMany}, -1, 1, 2);
  for (int r = 0; r < 40; ++r) {
    const SampledRegion region(pyramid, regions_, r, switches_);
    float rows[5], columns[5];
    for (int i = 0; i < 5; ++i) rows[i] = region.y.weight(i, 7), columns[i] = region.x.weight(i, 9);
    for (int c = 0; c < kMany; c += kTogether) {
      float means[kTogether], sums[kTogether] = {};
      roi_cell<kTogether>(pyramid, region, 2, 3, c, means);
      gather_gradient<kTogether>(gradient.const_data_ptr<float>() + c, rows, columns, switches_,
                                 kMany, sums);
      for (int v = 0; v < kTogether; ++v) {
        float mean, sum = 0;
        roi_cell<1>(pyramid, region, 2, 3, c + v, &mean);
        gather_gradient<1>(gradient.const_data_ptr<float>() + c + v, rows, columns, switches_,
                           kMany, &sum);
        EXPECT_EQ(means[v], mean);
        EXPECT_EQ(sums[v], sum);
      }
    }
  }
}

TEST_P(RoiAlignArithmetic, MatchesCpuGradients) {
  const auto features = at::zeros({kImages, kChannels, kHeight, kWidth}).requires_grad_();
  const auto weights = random_values({40, kChannels, 5, 5}, -1, 1, 5);
  roi_align(features, rois_, {}, options_).backward(weights);

  const auto cells = weights.permute({0, 2, 3, 1}).contiguous();
  auto gradient = at::zeros({kImages, kHeight, kWidth, kChannels});
  const auto pyramid = one_level(gradient.mutable_data_ptr<float>());
  auto* out = pyramid.maps[0];
  for (int n = 0; n < kImages; ++n)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x, out += kChannels)
        for (int r = 0; r < 40; ++r) {
          const SampledRegion region(pyramid, regions_, r, switches_);
          if (region.image != n || !region.y.may_read(5, y, y) || !region.x.may_read(5, x, x))
            continue;
          float rows[5], columns[5];
          for (int i = 0; i < 5; ++i)
            rows[i] = region.y.weight(i, y), columns[i] = region.x.weight(i, x);
          for (int c = 0; c < kChannels; ++c)
            gather_gradient<1>(cells.const_data_ptr<float>() + r * 25 * kChannels + c, rows,
                               columns, switches_, kChannels, out + c);
        }
  EXPECT_TRUE(tensors_close(gradient.permute({0, 3, 1, 2}), features.grad(), 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Switches, RoiAlignArithmetic,
                         ::testing::Combine(::testing::Values(0, 2), ::testing::Bool()));

TEST(BoxArithmetic, MatchesCpuIou) {
  const auto a = random_boxes(50, 100, 80, 1), b = random_boxes(70, 100, 80, 2);
  auto table = at::empty({50, 70});
  auto* out = table.mutable_data_ptr<float>();
  for (int i = 0; i < 50; ++i)
    for (int j = 0; j < 70; ++j)
      *out++ = iou(box_at(a.const_data_ptr<float>(), i), box_at(b.const_data_ptr<float>(), j), 0);
  EXPECT_TRUE(tensors_equal(table, box_iou(a, b)));
}

TEST(BoxArithmetic, MatchesCpuProposals) {
  const auto anchors = random_boxes(200, 300, 100, 1) - 50;
  auto deltas = random_values({1, 200, 4}, -3, 6, 2);
  deltas[0][7][2] = kNan;
  const auto scores = random_values({200}, 0, 1, 3), sizes = random_values({1, 2}, 200, 210, 4);
  const auto index = at::empty({200}, at::kLong);
  for (int i = 0; i < 200; ++i) index.mutable_data_ptr<std::int64_t>()[i] = 199 - i;
  const ChosenAnchors chosen{anchors.const_data_ptr<float>(),
                             deltas.const_data_ptr<float>(),
                             scores.const_data_ptr<float>(),
                             sizes.const_data_ptr<float>(),
                             index.const_data_ptr<std::int64_t>(),
                             200,
                             200,
                             200};
  const BoxCoder coder;
  const BoxDecoding coding{{1, 1, 1, 1}, static_cast<float>(coder.max_log_scale), 0};
  auto boxes = at::empty({200, 4});
  std::vector<std::uint8_t> valid(200);
  for (int i = 0; i < 200; ++i)
    decode_chosen(chosen, coding, 0, i, boxes.mutable_data_ptr<float>(), valid.data());

  EXPECT_EQ(valid[192], 0);  // NaN
  boxes[192].zero_(), deltas[0][7].zero_();
  auto expected = clip_boxes(coder.decode(anchors, deltas[0]), sizes[0][0].item<float>(),
                             sizes[0][1].item<float>())
                      .index_select(0, index);
  expected[192].zero_();
  EXPECT_TRUE(tensors_close(boxes, expected, 1e-6));
  for (int i = 0; i < 200; ++i) {
    if (i == 192) continue;
    const auto box = box_at(boxes.const_data_ptr<float>(), i);
    EXPECT_EQ(valid[static_cast<std::size_t>(i)], box.x2 > box.x1 && box.y2 > box.y1) << i;
  }
}

TEST(MatcherArithmetic, MatchesCpu) {
  constexpr std::int64_t kBoxes = 500, kAll = 3 * kBoxes;
  auto truths = random_boxes(9, 100, 60, 1);
  truths[4] += 1000;  // overlaps no box
  const auto begins = longs({0, 5, 5, 9});
  const TruthTable table{truths.const_data_ptr<float>(), begins.const_data_ptr<std::int64_t>(), 9,
                         3};
  for (const bool shared : {false, true}) {
    const auto memory = random_boxes(shared ? kBoxes : kAll, 100, 60, 2);
    const auto boxes = shared ? memory.expand({3, kBoxes, 4}) : memory.view({3, kBoxes, 4});
    const BoxTable candidates{memory.const_data_ptr<float>(), kBoxes, shared};
    std::vector<float> highest;
    for (std::int64_t g = 0; g < 9; ++g) {
      const auto image = table.image_of(g);
      EXPECT_EQ(image, g < 5 ? 0 : 2);
      float best = 0;
      for (std::int64_t i = 0; i < kBoxes; ++i)
        best = std::max(best, iou(box_at(table.boxes, g), candidates.at(image, i), 0));
      highest.push_back(best);
    }
    for (const bool low_quality : {false, true}) {
      auto truth = at::empty({3, kBoxes}, at::kLong);
      auto label = at::empty({3, kBoxes}, at::kChar);
      for (std::int64_t i = 0; i < kAll; ++i)
        match_one(table, candidates, highest.data(), {0.3F, 0.7F, 0, low_quality}, i,
                  truth.mutable_data_ptr<std::int64_t>(), label.mutable_data_ptr<std::int8_t>());
      const auto expected =
          millrace::match(truths, begins, boxes,
                          {.bg_iou_thresh = 0.3, .fg_iou_thresh = 0.7, .low_quality = low_quality});
      EXPECT_TRUE(tensors_equal(truth, expected.truth));
      EXPECT_TRUE(tensors_equal(label, expected.label));
    }
  }
}

TEST(KeyArithmetic, MatchesCpuTopK) {
  std::vector<float> values{0.0F, -0.0F, 1.5F, -1.5F, kNan, kInfinite, -kInfinite, 1e30F, -1e30F};
  const auto more = random_values({500}, -4, 4, 3).mul(20).round();  // with ties
  values.insert(values.end(), more.const_data_ptr<float>(), more.const_data_ptr<float>() + 500);
  std::vector<std::int64_t> keys;
  for (std::size_t i = 0; i < values.size(); ++i)
    keys.push_back(key_of(values[i], static_cast<std::uint32_t>(i)));
  std::ranges::sort(keys, std::greater<>());
  EXPECT_GT(keys.back(), kNoKey);
  const auto expected = top_k(values, std::ssize(values));  // without non-finite values
  ASSERT_EQ(expected.size() + 3, keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i >= expected.size()) {
      EXPECT_EQ(value_of(keys[i]), -kInfinite);
      continue;
    }
    EXPECT_EQ(index_of(keys[i]), expected[i]);
    EXPECT_EQ(value_of(keys[i]), values[static_cast<std::size_t>(expected[i])]);
  }
}

TEST(SamplingArithmetic, RanksRowsOfEachLabel) {
  constexpr std::int64_t kCount = 2 * kLabelChunk + 100;
  const auto label = random_values({2, kCount}, -1, 2, 5).floor().to(at::kChar);
  std::vector<std::int32_t> counts(2 * 3 * 2);
  for (std::int64_t i = 0; i < 2 * kCount; ++i) {
    const auto value = label.const_data_ptr<std::int8_t>()[i];
    const auto chunk = i / kCount * 3 + i % kCount / kLabelChunk;
    if (value >= 0) ++counts[static_cast<std::size_t>(2 * chunk + (value == 1 ? 0 : 1))];
  }
  const LabelTable table{label.const_data_ptr<std::int8_t>(), counts.data(), kCount, 3};
  for (std::int64_t image = 0; image < 2; ++image)
    for (const std::int64_t value : {0, 1}) {
      const auto listed = (label[image] == value).nonzero().squeeze(1).contiguous();
      for (std::int64_t rank = 0; rank < listed.numel(); ++rank) {
        const std::int64_t wanted[] = {image, value, rank};
        ASSERT_EQ(table.place(wanted),
                  image * kCount + listed.const_data_ptr<std::int64_t>()[rank]);
      }
    }
}

TEST(FocalArithmetic, MatchesCpuLossAndGradient) {
  for (const double gamma : {2.0, 1.5, 0.0}) {
    const auto logits = random_values({200, 7}, -30, 30, 1).requires_grad_();
    const auto classes = random_values({200}, -2, 7, 2).floor().to(at::kLong);
    const auto expected = focal_loss_sum(logits, classes, {0.25, gamma});
    (expected * 3).backward();
    const FocalTable<float> table{logits.const_data_ptr<float>(),
                                  classes.const_data_ptr<std::int64_t>(), 200, 7};
    const FocalRules rules{0.25, gamma};
    double sum = 0;
    auto gradient = at::empty({200, 7});
    for (std::int64_t i = 0; i < 1400; ++i) {
      sum += table.value(i, rules);
      gradient.mutable_data_ptr<float>()[i] = 3 * table.slope(i, rules);
    }
    EXPECT_NEAR(sum, expected.item<double>(), 1e-6 * expected.item<double>());
    EXPECT_TRUE(tensors_close(gradient, logits.grad(), 1e-6));
  }
}

TEST(NormalizeArithmetic, MatchesCpuBitwise) {
  Batch batch{.height = 5, .width = 7};
  batch.images = {{.width = 7, .height = 4}, {.width = 3, .height = 5}};
  batch.pixels.reset(new std::uint8_t[batch.bytes()]);
  for (std::size_t i = 0; i < batch.bytes(); ++i)
    batch.pixels[i] = static_cast<std::uint8_t>(i * 7 % 256);
  for (const auto order : {ChannelOrder::bgr, ChannelOrder::rgb}) {
    const PixelOptions options{.pixel_order = order, .pixel_std = {57.1, 58.2, 59.3}};
    const auto expected = millrace::normalize(batch, options, at::kCPU, {9, 6});
    PixelScaling scaling{{}, {}, options.pixel_order == ChannelOrder::bgr};
    for (std::size_t c = 0; c < 3; ++c) {
      scaling.mean[c] = static_cast<float>(options.pixel_mean[c]);
      scaling.deviation[c] = static_cast<float>(options.pixel_std[c]);
    }
    const PixelTable table{batch.pixels.get(), 5, 7, 6, 9};
    ImageSizes second{}, first{};
    first.height[0] = 4, first.width[0] = 7;
    second.height[0] = 5, second.width[0] = 3;
    auto out = at::empty({2, 6, 9, 3});
    for (std::int64_t i = 0; i < 54; ++i) {
      normalize_pixel(table, first, scaling, 0, i, out.mutable_data_ptr<float>());
      normalize_pixel(table, second, scaling, 1, i, out.mutable_data_ptr<float>());
    }
    EXPECT_TRUE(tensors_equal(out.permute({0, 3, 1, 2}), expected)) << value_name(order);
  }
}

TEST(EpilogueArithmetic, MatchesCpu) {
  const auto y = random_values({2, 3, 4, 6}, -1, 1, 1).permute({0, 3, 1, 2});  // channels last
  const auto add = random_values({2, 3, 4, 6}, -1, 1, 2).permute({0, 3, 1, 2});
  const auto bias = random_values({6}, -1, 1, 3);
  y[0][0][0][0] = kNan;
  static const auto op =
      dispatched<void(const at::Tensor&, const std::optional<at::Tensor>&,
                      const std::optional<at::Tensor>&, bool)>("millrace::finish_convolution_");
  for (int which = 0; which < 8; ++which) {
    const bool has_bias = which & 1, adds = which & 2, relu = which & 4;
    auto expected = y.clone();
    op.call(expected, has_bias ? std::optional(bias) : std::nullopt,
            adds ? std::optional(add) : std::nullopt, relu);
    auto ours = y.clone();
    const Epilogue<float> epilogue{has_bias ? bias.const_data_ptr<float>() : nullptr,
                                   adds ? add.const_data_ptr<float>() : nullptr, relu};
    auto* const out = ours.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < ours.numel(); ++i)
      out[i] = epilogue(out[i], add.const_data_ptr<float>()[i], i % 6);
    EXPECT_TRUE(tensors_equal(ours.nan_to_num(7), expected.nan_to_num(7))) << which;
    EXPECT_TRUE(ours[0][0][0][0].isnan().item<bool>());
  }
}

TEST(MaskTargetArithmetic, MatchesCpuBitwise) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto size = std::array{28, 1, 7, 64, 256}[static_cast<std::size_t>(round % 5)];
    const auto cells = static_cast<std::size_t>(size * size);
    const auto polygon = testing::random_polygon(random, 60, 50);
    const float box[4] = {static_cast<float>(random() % 30), static_cast<float>(random() % 30),
                          static_cast<float>(31 + random() % 30),
                          static_cast<float>(31 + random() % 30)};
    const auto points = static_cast<std::int64_t>(polygon.size() / 2);
    std::vector<unsigned> flips(cells / 32 + 1);
    std::vector<std::uint8_t> target(cells), expected(cells);
    const RegionGrid grid(box, size);
    const auto height = static_cast<std::uint32_t>(size);
    for (std::int64_t i = 0; i < points; ++i)
      grid.side(polygon.data(), 0, points, i).each_crossing(height, height, [&](std::uint32_t at) {
        flips.at(at / 32) ^= bit_of(at);
      });
    for (int column = 0; column < size; ++column)
      each_inside(flips.data(), size, column,
                  [&](int row) { target[static_cast<std::size_t>(row * size + column)] = 1; });
    coco::rasterize_in_box({&polygon, 1}, {box[0], box[1], box[2], box[3]}, size, expected.data());
    ASSERT_EQ(target, expected) << round;
  }
}

}  // namespace
}  // namespace millrace::cuda
