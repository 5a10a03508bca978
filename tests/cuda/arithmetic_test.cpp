// The arithmetic of the GPU's kernels, run on the host, against the operators for the CPU.
#include <ATen/TensorOperators.h>

#include <random>

#include "millrace/coco/masks/masks.h"
#include "millrace/models/ops/boxes.h"
#include "millrace/models/ops/matcher.h"
#include "millrace/models/ops/roi_align.h"
#include "millrace/plugins/cuda/boxes.h"
#include "millrace/plugins/cuda/mask_targets.h"
#include "millrace/plugins/cuda/roi_align.h"
#include "tests/coco/random_masks.h"
#include "tests/models/operators.h"

namespace millrace::cuda {
namespace {

using millrace::testing::close;
using millrace::testing::kNan;
using millrace::testing::random_boxes;
using millrace::testing::random_values;
using millrace::testing::same;

constexpr int kImages = 2, kChannels = 3, kHeight = 20, kWidth = 24;
constexpr float kScale = 0.25F;

/// Regions in and around the map, on it as a whole, and without extent.
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

TEST_P(RoiAlignArithmetic, CellsAreTheCpus) {
  const auto features = random_values({kImages, kChannels, kHeight, kWidth}, -1, 1, 1);
  const auto map = features.permute({0, 2, 3, 1}).contiguous();
  const auto pyramid = one_level(map.const_data_ptr<float>());
  auto output = at::empty({40, kChannels, 5, 5});
  auto* out = output.mutable_data_ptr<float>();
  for (int r = 0; r < 40; ++r) {
    const SampledRegion region(pyramid, regions_, r, switches_);
    for (int c = 0; c < kChannels; ++c)
      for (int cell = 0; cell < 25; ++cell)
        *out++ = roi_cell(pyramid, region, cell / 5, cell % 5, c);
  }
  EXPECT_TRUE(close(output, roi_align(features, rois_, {}, options_), 1e-6));
}

TEST_P(RoiAlignArithmetic, GatheredGradientsAreTheCpus) {
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
            out[c] += gathered_gradient(cells.const_data_ptr<float>() + r * 25 * kChannels + c,
                                        rows, columns, switches_, kChannels);
        }
  EXPECT_TRUE(close(gradient.permute({0, 3, 1, 2}), features.grad(), 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Switches, RoiAlignArithmetic,
                         ::testing::Combine(::testing::Values(0, 2), ::testing::Bool()));

TEST(BoxArithmetic, IouHasTheCpusBits) {
  const auto a = random_boxes(50, 100, 80, 1), b = random_boxes(70, 100, 80, 2);
  auto table = at::empty({50, 70});
  auto* out = table.mutable_data_ptr<float>();
  for (int i = 0; i < 50; ++i)
    for (int j = 0; j < 70; ++j)
      *out++ = iou(box_at(a.const_data_ptr<float>(), i), box_at(b.const_data_ptr<float>(), j), 0);
  EXPECT_TRUE(same(table, box_iou(a, b)));
}

TEST(BoxArithmetic, ProposalsAreDecodedAndCutAsOnTheCpu) {
  const auto anchors = random_boxes(200, 300, 100, 1) - 50;
  auto deltas = random_values({1, 200, 4}, -3, 6, 2);
  deltas[0][7][2] = kNan;
  const auto scores = random_values({200}, 0, 1, 3), sizes = random_values({1, 2}, 200, 210, 4);
  const auto index = at::empty({200}, at::kLong), image = at::zeros({200}, at::kLong);
  for (int i = 0; i < 200; ++i) index.mutable_data_ptr<std::int64_t>()[i] = 199 - i;
  const ChosenAnchors chosen{anchors.const_data_ptr<float>(),
                             deltas.const_data_ptr<float>(),
                             scores.const_data_ptr<float>(),
                             sizes.const_data_ptr<float>(),
                             index.const_data_ptr<std::int64_t>(),
                             image.const_data_ptr<std::int64_t>(),
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
  EXPECT_TRUE(close(boxes, expected, 1e-6));
  for (int i = 0; i < 200; ++i) {
    if (i == 192) continue;
    const auto box = box_at(boxes.const_data_ptr<float>(), i);
    EXPECT_EQ(valid[static_cast<std::size_t>(i)], box.x2 > box.x1 && box.y2 > box.y1) << i;
  }
}

TEST(MatcherArithmetic, MatchesAreTheCpus) {
  const auto boxes = random_boxes(500, 100, 60, 2);
  auto truths = random_boxes(9, 100, 60, 1);
  truths[4] += 1000;  // overlaps none
  const auto table = box_iou(truths, boxes);
  const auto highest = std::get<0>(table.max(1));
  for (const bool low_quality : {false, true}) {
    auto truth = at::empty({500}, at::kLong);
    auto label = at::empty({500}, at::kChar);
    for (int i = 0; i < 500; ++i)
      match_box(truths.const_data_ptr<float>(), 9, box_at(boxes.const_data_ptr<float>(), i),
                highest.const_data_ptr<float>(), {0.3F, 0.7F, 0, low_quality},
                truth.mutable_data_ptr<std::int64_t>()[i],
                label.mutable_data_ptr<std::int8_t>()[i]);
    const auto expected =
        millrace::match(truths, boxes, {.low = 0.3, .high = 0.7, .low_quality = low_quality});
    EXPECT_TRUE(same(truth, expected.truth));
    EXPECT_TRUE(same(label, expected.label));
  }
}

TEST(MaskTargetArithmetic, RastersAreTheCpusBitForBit) {
  constexpr int kSize = 28;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto polygon = testing::random_polygon(random, 60, 50);
    const float box[4] = {static_cast<float>(random() % 30), static_cast<float>(random() % 30),
                          static_cast<float>(31 + random() % 30),
                          static_cast<float>(31 + random() % 30)};
    const auto points = static_cast<std::int64_t>(polygon.size() / 2);
    std::vector<std::uint8_t> flips(kSize * kSize + 1), target(kSize * kSize),
        expected(kSize * kSize);
    const RegionGrid grid(box, kSize);
    for (std::int64_t i = 0; i < points; ++i)
      grid.side(polygon.data(), 0, points, i).each_crossing(kSize, kSize, [&](std::uint32_t at) {
        flips[at] ^= 1;
      });
    std::uint8_t state = 0;
    for (int i = 0; i < kSize * kSize; ++i) {
      state ^= flips[static_cast<std::size_t>(i)];
      target[static_cast<std::size_t>(i % kSize * kSize + i / kSize)] = state;
    }
    coco::rasterize_in_box({&polygon, 1}, {box[0], box[1], box[2], box[3]}, kSize, expected.data());
    ASSERT_EQ(target, expected) << round;
  }
}

}  // namespace
}  // namespace millrace::cuda
