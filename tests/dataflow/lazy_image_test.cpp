// Our bilinear resize is OpenCV's, byte for byte, and a lazy image is one that was mirrored and
// resized at once.
#include "millrace/dataflow/image/lazy_image.h"

#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>

#include "millrace/base/random.h"
#include "millrace/dataflow/image/bilinear.h"
#include "millrace/dataflow/image/bilinear_kernel.h"

namespace millrace {
namespace {

cv::Mat slope(int width, int height) {
  cv::Mat image(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      image.at<cv::Vec3b>(y, x) = {static_cast<std::uint8_t>(3 * x),
                                   static_cast<std::uint8_t>(5 * y), 77};
  return image;
}

cv::Mat resized(const cv::Mat& image, cv::Size size) {
  cv::Mat result;
  cv::resize(image, result, size, 0, 0, cv::INTER_LINEAR);
  return result;
}

cv::Mat mirrored(const cv::Mat& image) {
  cv::Mat result;
  cv::flip(image, result, 1);
  return result;
}

cv::Mat noise(cv::Size size, Rng& rng) {
  cv::Mat image(size, CV_8UC3);
  for (std::size_t i = 0; i < image.total() * 3; ++i)
    image.data[i] = static_cast<std::uint8_t>(rng.below(256));
  return image;
}

/// By each of the kernels that this processor has, as the first of those that may be taken.
void expect_as_opencv(const cv::Mat& image, cv::Size size) {
  const auto kernels = bilinear_kernels();
  for (std::size_t k = 0; k <= kernels.size(); ++k)
    for (const bool mirror : {false, true}) {
      cv::Mat target(size, CV_8UC3);
      resize_bilinear(image, target, mirror, kernels.subspan(k));
      const auto expected = resized(mirror ? mirrored(image) : image, size);
      ASSERT_EQ(cv::norm(expected, target, cv::NORM_INF), 0)
          << (k < kernels.size() ? kernels[k].name : "opencv") << ", mirrored: " << mirror << ", "
          << image.size() << size;
    }
}

TEST(ResizeBilinear, GivesTheBytesOfOpenCv) {
  Rng rng{3};
  const auto side = [&](int most) { return static_cast<int>(rng.between(1, most)); };
  for (int i = 0; i < 300; ++i)
    expect_as_opencv(noise({side(90), side(90)}, rng), {side(200), side(200)});
  for (const auto size : {cv::Size(60, 40), cv::Size(15, 10), cv::Size(10, 40), cv::Size(30, 20)})
    expect_as_opencv(noise({30, 20}, rng), size);
  for (const int to : {100, 213, 640, 1200})  // as wide as photos
    expect_as_opencv(noise({640, 9}, rng), {to, 12});
  for (const int width : {1, 2, 3})  // the smallest images
    for (const int height : {1, 2, 3})
      for (const auto size : {cv::Size(1, 1), cv::Size(7, 2), cv::Size(2, 7), cv::Size(40, 40)})
        expect_as_opencv(noise({width, height}, rng), size);
}

TEST(ResizeBilinear, StaysInsideAPartOfAnImage) {
  Rng rng{5};
  const auto image = noise({40, 30}, rng);
  cv::Mat canvas(60, 80, CV_8UC3, cv::Scalar::all(9));
  auto target = canvas(cv::Rect(10, 10, 50, 40));
  resize_bilinear(image(cv::Rect(5, 5, 20, 20)), target);
  const auto expected = resized(image(cv::Rect(5, 5, 20, 20)), target.size());
  EXPECT_EQ(cv::norm(expected, target, cv::NORM_INF), 0);
  target.setTo(cv::Scalar::all(9));
  EXPECT_EQ(cv::norm(canvas, cv::Mat(60, 80, CV_8UC3, cv::Scalar::all(9)), cv::NORM_INF), 0);
}

TEST(ResizeBilinear, RefusesWhatItIsNotFor) {
  cv::Mat rgb(4, 4, CV_8UC3), grey(4, 4, CV_8UC1), none;
  EXPECT_THROW(resize_bilinear(grey, rgb), std::invalid_argument);
  EXPECT_THROW(resize_bilinear(rgb, grey), std::invalid_argument);
  EXPECT_THROW(resize_bilinear(none, rgb), std::invalid_argument);
  EXPECT_THROW(resize_bilinear(rgb, none), std::invalid_argument);
}

void expect_equal(const LazyImage& image, const cv::Mat& expected) {
  ASSERT_EQ(image.size(), expected.size());
  cv::Mat target(image.size(), CV_8UC3), looked_at = LazyImage(image).pixels();
  image.write_to(target);
  EXPECT_EQ(cv::norm(target, expected, cv::NORM_INF), 0);
  ASSERT_EQ(looked_at.size(), expected.size());
  EXPECT_EQ(cv::norm(looked_at, expected, cv::NORM_INF), 0);
}

TEST(LazyImage, IsTheImageItWasGiven) {
  expect_equal(slope(40, 30), slope(40, 30));
  EXPECT_TRUE(LazyImage().empty());
  EXPECT_EQ(LazyImage(slope(40, 30)).bytes(), 40U * 30 * 3);
}

TEST(LazyImage, MirrorsAndResizes) {
  LazyImage image(slope(40, 30));
  image.mirror();
  expect_equal(image, mirrored(slope(40, 30)));
  image.resize({70, 55});
  expect_equal(image, resized(mirrored(slope(40, 30)), {70, 55}));
  EXPECT_EQ(image.bytes(), 40U * 30 * 3) << "nobody has looked at it";
  image.mirror();
  expect_equal(image, resized(slope(40, 30), {70, 55}));
}

TEST(LazyImage, IsWrittenToItsOwnSizeAndTypeAlone) {
  const LazyImage image(slope(40, 30));
  for (auto target :
       {cv::Mat(30, 40, CV_8UC1), cv::Mat(30, 40, CV_32FC3), cv::Mat(40, 30, CV_8UC3)})
    EXPECT_THROW(image.write_to(target), std::invalid_argument);
}

TEST(LazyImage, IsDoneOnceLookedAt) {
  LazyImage image(slope(40, 30));
  image.mirror();
  image.resize({70, 55});
  auto& pixels = image.pixels();
  pixels.at<cv::Vec3b>(0, 0) = {1, 2, 3};
  EXPECT_EQ(image.pixels().at<cv::Vec3b>(0, 0), cv::Vec3b(1, 2, 3));
  image.pixels() = slope(9, 8);
  expect_equal(image, slope(9, 8));
}

TEST(LazyImage, MayHoldFewerPixelsThanItHas) {
  const LazyImage full(slope(40, 30), {160, 120});
  EXPECT_EQ(full.size(), cv::Size(160, 120));
  expect_equal(full, resized(slope(40, 30), {160, 120}));
  auto smaller = full;
  smaller.resize({50, 40});
  expect_equal(smaller, resized(slope(40, 30), {50, 40}));
}

TEST(LazyImage, LeavesCopiesAloneWhenMirrored) {
  const LazyImage original(slope(40, 30));
  auto copy = original;
  copy.mirror();
  copy.pixels().setTo(0);
  expect_equal(original, slope(40, 30));
}

}  // namespace
}  // namespace millrace
