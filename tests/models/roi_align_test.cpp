#include "millrace/models/ops/roi_align.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <stdexcept>

#include "tests/models/random_boxes.h"
#include "tests/models/threads.h"

namespace millrace {
namespace {

using testing::close;
using testing::random_boxes;
using testing::random_values;
using testing::same;

at::Tensor random_rois(std::int64_t count, std::int64_t images, double extent, double side) {
  const auto image = random_values({count, 1}, 0, static_cast<double>(images), 3).floor();
  return at::cat({image, random_boxes(count, extent, side, 4)}, 1);
}

TEST(RoiAlign, AConstantMapGivesTheConstant) {
  const auto rois = at::tensor({0, 4, 4, 20, 12}, at::kFloat).view({1, 5});
  const auto output = roi_align({at::full({1, 3, 16, 16}, 2.5)}, rois, {}, {.scale = 0.5});
  EXPECT_TRUE(close(output, at::full({1, 3, 7, 7}, 2.5), 1e-6));
}

TEST(RoiAlign, ACellOnAPixelGivesThePixel) {
  const auto features = random_values({1, 1, 6, 6}, -1, 1, 1);
  // The pixel in row 3, column 2
  const auto rois = at::tensor({0, 2, 3, 3, 4}, at::kFloat).view({1, 5});
  const auto output = roi_align({features}, rois, {}, {.height = 1, .width = 1});
  EXPECT_EQ(output.item<float>(), features[0][0][3][2].item<float>());
}

// The operator is linear, so its gradient is right where <g, A d> = <A' g, d> for any g and d:
// finite differences without their rounding.
TEST(RoiAlign, GradientIsTheTransposeOfTheOperator) {
  for (const bool aligned : {false, true})
    for (const std::int64_t ratio : {0, 2}) {
      const RoiAlignOptions options{5, 5, 0.25, ratio, aligned};
      const auto rois = random_rois(40, 2, 80, 60);
      const auto features = random_values({2, 19, 20, 24}, -1, 1, 1).requires_grad_();
      const auto direction = random_values({2, 19, 20, 24}, -1, 1, 2);
      const auto weights = random_values({40, 19, 5, 5}, -1, 1, 5);
      roi_align({features}, rois, {}, options).backward(weights);
      const auto forwards =
          (roi_align({direction}, rois, {}, options).to(at::kDouble) * weights).sum();
      const auto backwards = (features.grad().to(at::kDouble) * direction).sum();
      EXPECT_NEAR(forwards.item<double>(), backwards.item<double>(), 1e-5 * weights.numel() / 100);
    }
}

TEST(RoiAlign, IsTheSameOnAnyNumberOfThreads) {
  const auto rois = random_rois(60, 3, 100, 60);
  const auto weights = random_values({60, 70, 7, 7}, -1, 1, 6);
  const auto levels = random_values({60}, 0, 2, 9).to(at::kLong);
  testing::expect_same_on_any_threads([&] {
    const auto fine = random_values({3, 70, 25, 25}, -1, 1, 7).requires_grad_();
    const auto coarse = random_values({3, 70, 13, 13}, -1, 1, 8).requires_grad_();
    const auto output = roi_align({fine, coarse}, rois, levels, {.scale = 0.25});
    output.backward(weights);
    return std::vector{output.detach(), fine.grad(), coarse.grad()};
  });
}

TEST(RoiAlign, TakesAnyMemoryFormatAndGivesChannelsLast) {
  const auto features = random_values({2, 8, 10, 12}, -1, 1, 1);
  const auto rois = random_rois(9, 2, 10, 8);
  const auto output = roi_align({features}, rois, {}, {});
  EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(
      same(roi_align({features.contiguous(at::MemoryFormat::ChannelsLast)}, rois, {}, {}), output));
}

TEST(RoiAlign, RegionsOfAllMapsAtOnceAreThoseOfEachMapAlone) {
  const auto rois = random_rois(50, 2, 90, 60);
  const auto levels = random_values({50}, 0, 3, 8).to(at::kLong);
  std::vector<at::Tensor> maps, alone;
  for (const std::int64_t side : {24, 12, 6}) {
    maps.push_back(random_values({2, 66, side, side + 1}, -1, 1, 9).requires_grad_());
    alone.push_back(maps.back().detach().clone().requires_grad_());
  }
  const auto weights = random_values({50, 66, 3, 5}, -1, 1, 5);
  const auto output = roi_align(maps, rois, levels, {.height = 3, .width = 5, .scale = 0.25});
  output.backward(weights);
  for (std::size_t level = 0; level < 3; ++level) {
    const auto here = levels.eq(static_cast<std::int64_t>(level)).nonzero().squeeze(1);
    const auto scale = 0.25 / static_cast<double>(1 << level);
    const auto expected = roi_align({alone[level]}, rois.index_select(0, here), {},
                                    {.height = 3, .width = 5, .scale = scale});
    expected.backward(weights.index_select(0, here));
    EXPECT_TRUE(same(output.index_select(0, here), expected));
    EXPECT_TRUE(same(maps[level].grad(), alone[level].grad()));
  }
}

TEST(RoiAlign, MapsThatNoRegionIsTakenFromHaveAGradientOfZero) {
  const std::vector maps = {random_values({1, 4, 8, 8}, -1, 1, 1).requires_grad_(),
                            random_values({1, 4, 4, 4}, -1, 1, 2).requires_grad_()};
  roi_align(maps, at::zeros({0, 5}), {}, {}).sum().backward();
  for (const auto& map : maps) EXPECT_TRUE(same(map.grad(), at::zeros_like(map)));
}

TEST(RoiAlign, MovesWithThePicture) {
  auto features = at::zeros({1, 5, 30, 30});
  features.slice(2, 5, 15).slice(3, 5, 15).copy_(random_values({1, 5, 10, 10}, -1, 1, 1));
  const auto rois = at::cat({at::zeros({20, 1}), random_boxes(20, 40, 20, 3) + 20}, 1);
  const auto move = at::tensor({0, 24, 40, 24, 40}, at::kFloat);  // 6 and 10 pixels of the map
  const auto moved = features.roll({10, 6}, {2, 3});
  EXPECT_TRUE(close(roi_align({moved}, rois + move, {}, {.scale = 0.25}),
                    roi_align({features}, rois, {}, {.scale = 0.25}), 1e-5));
}

TEST(RoiAlign, FollowsTheOrderOfItsRegionsAndTheScaleOfItsMap) {
  const auto features = random_values({3, 9, 20, 20}, -1, 1, 1);
  const auto rois = random_rois(25, 3, 70, 50);
  const auto output = roi_align({features}, rois, {}, {.scale = 0.25});
  EXPECT_TRUE(same(roi_align({features}, rois.flip(0), {}, {.scale = 0.25}), output.flip(0)));
  EXPECT_TRUE(same(roi_align({features * 4}, rois, {}, {.scale = 0.25}), output * 4));
}

TEST(RoiAlign, MapsOfOnePixelAndVeryLongOnesGiveTheirConstant) {
  for (const auto& [height, width] : {std::pair{1, 1}, {2500, 5}, {5, 2500}}) {
    const auto features = at::full({1, 65, height, width}, -1.5);
    const auto rois = at::tensor({0, 0, 0, 4 * width, 4 * height}, at::kFloat).view({1, 5});
    for (const std::int64_t ratio : {0, 2}) {
      const auto output = roi_align({features}, rois, {}, {.scale = 0.25, .sampling_ratio = ratio});
      EXPECT_TRUE(close(output, at::full({1, 65, 7, 7}, -1.5), 1e-4)) << height << " x " << width;
    }
  }
}

TEST(RoiAlign, ReadsNarrowMapsAsFloat) {
  const auto rois = random_rois(9, 2, 10, 8);
  const auto maps = random_values({2, 8, 10, 12}, -1, 1, 1).to(at::kBFloat16).requires_grad_();
  const auto output = roi_align({maps}, rois, {}, {});
  EXPECT_TRUE(same(output, roi_align({maps.to(at::kFloat)}, rois, {}, {}).to(at::kBFloat16)));
  output.sum().backward();
  EXPECT_EQ(maps.grad().scalar_type(), at::kBFloat16);
}

TEST(RoiAlign, OddRegionsGiveZeros) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const auto rois = at::tensor({0.F, nan,  nan,  nan,  nan,  0.F, -infinite, 0.F, infinite, 4.F,  //
                                0.F, 50.F, 50.F, 60.F, 60.F, 0.F, 4.F,       4.F, 2.F,      2.F})
                        .view({4, 5});
  const auto output = roi_align({at::full({1, 2, 8, 8}, 1.0)}, rois, {}, {.height = 2, .width = 2});
  EXPECT_TRUE(same(output, at::zeros({4, 2, 2, 2})));
}

TEST(RoiAlign, RefusesAnImageThatIsNotThere) {
  const auto features = at::zeros({2, 1, 4, 4});
  for (const double image : {-1.0, 2.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
    const auto rois = at::tensor({image, 0.0, 0.0, 2.0, 2.0}, at::kFloat).view({1, 5});
    EXPECT_THROW(roi_align({features}, rois, {}, {}), std::invalid_argument) << image;
  }
}

TEST(RoiAlign, RefusesWhatDoesNotFit) {
  const auto map = at::zeros({2, 3, 4, 4}), rois = at::zeros({2, 5});
  const auto refuses = [&](const std::vector<at::Tensor>& maps, const at::Tensor& regions,
                           const at::Tensor& levels) {
    EXPECT_THROW(roi_align(maps, regions, levels, {}), std::invalid_argument);
  };
  refuses({}, rois, {});
  refuses({map[0]}, rois, {});
  refuses({map, at::zeros({2, 4, 2, 2})}, rois, {});
  refuses({map, at::zeros({1, 3, 2, 2})}, rois, {});
  refuses({map, map.to(at::kDouble)}, rois, {});
  refuses({map.to(at::kLong)}, rois, {});
  refuses({map}, at::zeros({2, 4}), {});
  refuses({map}, rois, at::zeros({3}, at::kLong));
  refuses({map}, rois, at::zeros({2}));
  refuses({map}, rois, at::full({2}, 1, at::kLong));
  refuses({map}, rois, at::full({2}, -1, at::kLong));
}

}  // namespace
}  // namespace millrace
