// Colour changes: the arithmetic, and the stages that draw random parameters for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/core.hpp>
#include <set>

#include "millrace/dataflow/stages/colors.h"
#include "tests/dataflow/samples.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

using Pixel = cv::Vec3b;

/// Applies a function to an image of equal pixels and returns a pixel of the result.
template <class Amount>
Pixel changed(Pixel pixel, cv::Mat (*function)(const cv::Mat&, Amount),
              std::decay_t<Amount> amount) {
  const cv::Mat image(2, 3, CV_8UC3, cv::Scalar(pixel[0], pixel[1], pixel[2]));
  return function(image, amount).template at<Pixel>(1, 2);
}

cv::Mat random_image(std::uint64_t seed) {
  cv::Mat image(37, 53, CV_8UC3);
  cv::RNG(seed).fill(image, cv::RNG::UNIFORM, 0, 256);
  return image;
}

TEST(Photometry, BrightnessScalesEveryValue) {
  EXPECT_EQ(changed({100, 3, 200}, photometry::brightness, 1.5), (Pixel{150, 5, 255}));
}

TEST(Photometry, ContrastScalesAroundMeanLuma) {
  cv::Mat image(1, 2, CV_8UC3);
  image.at<Pixel>(0, 0) = {100, 100, 100};
  image.at<Pixel>(0, 1) = {200, 200, 200};
  const auto result = photometry::contrast(image, 0.5);  // the mean is about 150
  EXPECT_EQ(result.at<Pixel>(0, 0), (Pixel{125, 125, 125}));
  EXPECT_EQ(result.at<Pixel>(0, 1), (Pixel{175, 175, 175}));
  EXPECT_EQ(photometry::contrast(image, 0).at<Pixel>(0, 1), (Pixel{150, 150, 150}));
}

TEST(Photometry, SaturationScalesAroundPixelLuma) {
  // 0.299 * 100 + 0.587 * 50 + 0.114 * 200 = 82.05
  EXPECT_EQ(changed({100, 50, 200}, photometry::saturation, 0), (Pixel{82, 82, 82}));
  EXPECT_EQ(changed({100, 50, 200}, photometry::saturation, 1.5), (Pixel{109, 34, 255}));
}

TEST(Photometry, HueRotatesPrimaryColours) {
  const auto third = [](Pixel pixel) { return changed(pixel, photometry::hue, 1.0 / 3); };
  const auto green = third({200, 0, 0}), blue = third({0, 200, 0});
  EXPECT_EQ(green[1], 200);
  EXPECT_LE(std::max(green[0], green[2]),
            4);  // a hue with 256 values cannot represent a third exactly
  EXPECT_EQ(blue[2], 200);
  EXPECT_LE(std::max(blue[0], blue[1]), 4);
  EXPECT_EQ(third({77, 77, 77}), (Pixel{77, 77, 77})) << "grey has no hue";
  const auto image = random_image(1);
  const auto twice = photometry::hue(photometry::hue(image, 0.5), -0.5);
  EXPECT_LT(cv::norm(image, twice, cv::NORM_L1) / static_cast<double>(image.total() * 3), 2);
}

TEST(Photometry, GammaChangesMiddleValues) {
  EXPECT_EQ(changed({0, 255, 128}, photometry::gamma, 2), (Pixel{0, 255, 64}));
}

TEST(Photometry, ShiftRoundsAndSaturates) {
  EXPECT_EQ(changed({100, 10, 250}, photometry::shift, {1.6, -20.2, 10}), (Pixel{102, 0, 255}));
}

TEST(Photometry, NeutralAmountsKeepImage) {
  const auto image = random_image(2);
  EXPECT_TRUE(same(photometry::brightness(image, 1), image));
  EXPECT_TRUE(same(photometry::contrast(image, 1), image));
  EXPECT_TRUE(same(photometry::saturation(image, 1), image));
  EXPECT_TRUE(same(photometry::gamma(image, 1), image));
  EXPECT_TRUE(same(photometry::shift(image, {0, 0, 0}), image));
}

TEST(ColorJitter, DrawsWithinRangesAndAllOrders) {
  Rng rng{2};
  const ColorJitter stage{
      .brightness = 0.3, .contrast = 0.2, .saturation = 1, .hue = 0.1, .gamma = 0.5};
  std::set<std::array<int, 5>> orders;
  double least = 1, greatest = 1;
  for (int i = 0; i < 3000; ++i) {
    const auto draw = stage.draw(rng);
    EXPECT_LE(std::abs(draw.brightness - 1), 0.3);
    EXPECT_LE(std::abs(draw.contrast - 1), 0.2);
    EXPECT_LE(std::abs(draw.saturation - 1), 1);
    EXPECT_LE(std::abs(draw.hue), 0.1);
    EXPECT_LE(std::abs(draw.gamma - 1), 0.5);
    orders.insert(draw.order);
    least = std::min(least, draw.brightness);
    greatest = std::max(greatest, draw.brightness);
  }
  EXPECT_EQ(orders.size(), 120U);
  EXPECT_LT(least, 0.72);
  EXPECT_GT(greatest, 1.28);
}

TEST(ColorJitter, AppliesChangesInDrawnOrder) {
  const cv::Mat image(1, 1, CV_8UC3, cv::Scalar(200, 100, 50));
  ColorJitter::Draw draw{.brightness = 2, .gamma = 2};
  const auto bright_first = ColorJitter::apply(image, draw);
  EXPECT_TRUE(same(bright_first, photometry::gamma(photometry::brightness(image, 2), 2)));
  draw.order = {4, 3, 2, 1, 0};
  const auto bright_last = ColorJitter::apply(image, draw);
  EXPECT_TRUE(same(bright_last, photometry::brightness(photometry::gamma(image, 2), 2)));
  EXPECT_FALSE(same(bright_first, bright_last));
  Rng rng{1};
  const ColorJitter none{.brightness = 0, .contrast = 0, .saturation = 0, .hue = 0};
  EXPECT_TRUE(same(none(sample_of(9, 7), rng).image.pixels(), sample_of(9, 7).image.pixels()));
}

TEST(HsvShift, ShiftsEachComponentSeparately) {
  const cv::Mat image(1, 1, CV_8UC3, cv::Scalar(200, 100, 100));  // hue 0, saturation one half
  const auto level = [](const cv::Mat& of) { return of.at<cv::Vec3b>(0, 0); };
  EXPECT_EQ(level(HsvShift::apply(image, {0, 0, 0})), cv::Vec3b(200, 100, 100));
  EXPECT_EQ(level(HsvShift::apply(image, {60, 0, 0})), cv::Vec3b(100, 200, 100));
  EXPECT_EQ(level(HsvShift::apply(image, {-60, 0, 0})), cv::Vec3b(100, 100, 200));
  EXPECT_EQ(level(HsvShift::apply(image, {0, -255, 0})), cv::Vec3b(200, 200, 200));
  EXPECT_EQ(level(HsvShift::apply(image, {0, 0, 100}))[0], 255);
}

TEST(HsvShift, DrawsEachShiftWithProbabilityHalf) {
  Rng rng{3};
  std::array<int, 3> still{}, most{};
  for (int i = 0; i < 2000; ++i) {
    const auto steps = HsvShift{}.draw(rng);
    for (std::size_t c = 0; c < 3; ++c) {
      still[c] += steps[c] == 0;
      most[c] = std::max(most[c], std::abs(steps[c]));
    }
  }
  // Hue changes by up to 10 degrees in steps of two; the fifth step is almost never drawn.
  EXPECT_EQ(most[0], 4);
  EXPECT_GE(most[1], 28);
  EXPECT_LE(most[2], 30);
  for (const auto count : {still[1], still[2]}) EXPECT_NEAR(count, 1033, 100);
}

TEST(Grayscale, MakesThreeEqualChannels) {
  Rng rng{3};
  auto sample = sample_of(9, 7);
  sample.image = random_image(3);
  const auto grey = Grayscale{.probability = 1}(sample, rng).image.pixels();
  cv::Mat channels[3];
  cv::split(grey, channels);
  EXPECT_TRUE(same(channels[0], channels[1]));
  EXPECT_TRUE(same(channels[0], channels[2]));
  EXPECT_TRUE(same(Grayscale{.probability = 0}(sample, rng).image.pixels(), sample.image.pixels()));
}

TEST(Lighting, MatchesTensorpackDeviation) {
  Rng rng{4};
  const Lighting stage{.deviation = 0.1};
  cv::Vec3d sum, squares;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const auto levels = stage.draw(rng);
    sum += levels;
    squares += levels.mul(levels);
  }
  // Row norms of eigenvectors * diag(0.1 * 255 * eigenvalues).
  const double expected[3] = {3.1670, 3.2221, 3.2539};
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(sum[c] / kDraws, 0, 0.1);
    EXPECT_NEAR(std::sqrt(squares[c] / kDraws), expected[c], 0.1);
  }
  auto sample = sample_of(9, 7);
  EXPECT_TRUE(same(Lighting{.deviation = 0}(sample, rng).image.pixels(), sample.image.pixels()));
}

TEST(Blur, KeepsMeanAndSmooths) {
  Rng rng{5};
  auto sample = sample_of(9, 7);
  sample.image = random_image(4);
  const auto blurred =
      Blur{.probability = 1, .min_sigma = 2, .max_sigma = 2}(sample, rng).image.pixels();
  cv::Scalar mean[2], spread[2];
  cv::meanStdDev(sample.image.pixels(), mean[0], spread[0]);
  cv::meanStdDev(blurred, mean[1], spread[1]);
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(mean[0][c], mean[1][c], 3);
    EXPECT_LT(spread[1][c], spread[0][c] / 3);
  }
  sample.image = cv::Mat(5, 4, CV_8UC3, cv::Scalar(10, 20, 200));
  EXPECT_TRUE(same(Blur{.probability = 1}(sample, rng).image.pixels(), sample.image.pixels()));
}

TEST(Noise, StaysWithinMaxSigma) {
  auto sample = sample_of(9, 7);
  sample.image = cv::Mat(300, 300, CV_8UC3, cv::Scalar::all(128));
  double greatest = 0;
  for (std::uint64_t i = 0; i < 30; ++i) {
    Rng rng{6, i};
    cv::Scalar mean, spread;
    cv::meanStdDev(Noise{.probability = 1, .max_sigma = 20}(sample, rng).image.pixels(), mean,
                   spread);
    EXPECT_NEAR(mean[1], 128, 0.5);
    EXPECT_LT(spread[1], 20.5);
    greatest = std::max(greatest, spread[1]);
  }
  EXPECT_GT(greatest, 15);
}

TEST(Noise, IsReproducible) {
  Rng one{7}, two{7}, other{8};
  const Noise stage{.probability = 1};
  const auto first = stage(sample_of(40, 30), one).image.pixels();
  EXPECT_TRUE(same(stage(sample_of(40, 30), two).image.pixels(), first));
  EXPECT_FALSE(same(stage(sample_of(40, 30), other).image.pixels(), first));
}

}  // namespace
}  // namespace millrace
