#include "models/ops/roi_align.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

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
  const auto output = roi_align(at::full({1, 3, 16, 16}, 2.5), rois, {.scale = 0.5});
  EXPECT_TRUE(close(output, at::full({1, 3, 7, 7}, 2.5), 1e-6));
}

TEST(RoiAlign, ACellOnAPixelGivesThePixel) {
  const auto features = random_values({1, 1, 6, 6}, -1, 1, 1);
  const auto rois =
      at::tensor({0, 2, 3, 3, 4}, at::kFloat).view({1, 5});  // the pixel in row 3, column 2
  const auto output = roi_align(features, rois, {.size = 1});
  EXPECT_EQ(output.item<float>(), features[0][0][3][2].item<float>());
}

// The operator is linear, so its gradient is right where <g, A d> = <A' g, d> for any g and d: finite differences
// without their rounding.
TEST(RoiAlign, GradientIsTheTransposeOfTheOperator) {
  for (const bool aligned : {false, true})
    for (const std::int64_t ratio : {0, 2}) {
      const RoiAlignOptions options{5, 0.25, ratio, aligned};
      const auto rois = random_rois(40, 2, 80, 60);
      const auto features = random_values({2, 19, 20, 24}, -1, 1, 1).requires_grad_();
      const auto direction = random_values({2, 19, 20, 24}, -1, 1, 2);
      const auto weights = random_values({40, 19, 5, 5}, -1, 1, 5);
      roi_align(features, rois, options).backward(weights);
      const auto forwards = (roi_align(direction, rois, options).to(at::kDouble) * weights).sum();
      const auto backwards = (features.grad().to(at::kDouble) * direction).sum();
      EXPECT_NEAR(forwards.item<double>(), backwards.item<double>(), 1e-5 * weights.numel() / 100);
    }
}

TEST(RoiAlign, IsTheSameOnAnyNumberOfThreads) {
  const auto rois = random_rois(60, 3, 100, 60);
  const auto weights = random_values({60, 70, 7, 7}, -1, 1, 6);
  testing::expect_same_on_any_threads([&] {
    const auto features = random_values({3, 70, 25, 25}, -1, 1, 7).requires_grad_();
    const auto output = roi_align(features, rois, {.scale = 0.25});
    output.backward(weights);
    return std::vector{output.detach(), features.grad()};
  });
}

TEST(RoiAlign, TakesAnyMemoryFormatAndGivesChannelsLast) {
  const auto features = random_values({2, 8, 10, 12}, -1, 1, 1);
  const auto rois = random_rois(9, 2, 10, 8);
  const auto output = roi_align(features, rois, {});
  EXPECT_TRUE(output.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(
      same(roi_align(features.contiguous(at::MemoryFormat::ChannelsLast), rois, {}), output));
}

TEST(RoiAlign, OddRegionsGiveZeros) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const auto rois = at::tensor({0.F, nan,  nan,  nan,  nan,  0.F, -infinite, 0.F, infinite, 4.F,  //
                                0.F, 50.F, 50.F, 60.F, 60.F, 0.F, 4.F,       4.F, 2.F,      2.F})
                        .view({4, 5});
  const auto output = roi_align(at::full({1, 2, 8, 8}, 1.0), rois, {.size = 2});
  EXPECT_TRUE(same(output, at::zeros({4, 2, 2, 2})));
}

TEST(RoiAlign, RefusesAnImageThatIsNotThere) {
  const auto features = at::zeros({2, 1, 4, 4});
  for (const double image : {-1.0, 2.0, 1e30, std::numeric_limits<double>::quiet_NaN()}) {
    const auto rois = at::tensor({image, 0.0, 0.0, 2.0, 2.0}, at::kFloat).view({1, 5});
    EXPECT_THROW(roi_align(features, rois, {}), std::invalid_argument) << image;
  }
}

}  // namespace
}  // namespace millrace
