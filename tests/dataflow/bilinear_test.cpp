// Our bilinear resize is OpenCV's, byte for byte.
#include "millrace/dataflow/image/bilinear.h"

#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>

#include "millrace/base/random.h"

namespace millrace {
namespace {

cv::Mat noise(cv::Size size, Rng& rng) {
  cv::Mat image(size, CV_8UC3);
  for (std::size_t i = 0; i < image.total() * 3; ++i)
    image.data[i] = static_cast<std::uint8_t>(rng.below(256));
  return image;
}

void expect_as_opencv(const cv::Mat& image, cv::Size size) {
  cv::Mat expected, target(size, CV_8UC3);
  cv::resize(image, expected, size, 0, 0, cv::INTER_LINEAR);
  resize_bilinear(image, target);
  ASSERT_EQ(cv::norm(expected, target, cv::NORM_INF), 0) << image.size() << " to " << size;
  cv::Mat mirrored;
  cv::flip(image, mirrored, 1);
  cv::resize(mirrored, expected, size, 0, 0, cv::INTER_LINEAR);
  resize_bilinear(image, target, /*mirrored=*/true);
  ASSERT_EQ(cv::norm(expected, target, cv::NORM_INF), 0)
      << "mirrored, " << image.size() << " to " << size;
}

TEST(ResizeBilinear, GivesTheBytesOfOpenCv) {
  Rng rng{3};
  const auto side = [&](int most) { return static_cast<int>(rng.between(1, most)); };
  for (int i = 0; i < 300; ++i)
    expect_as_opencv(noise({side(90), side(90)}, rng), {side(200), side(200)});
  for (const auto size : {cv::Size(60, 40), cv::Size(15, 10), cv::Size(10, 40), cv::Size(30, 20)})
    expect_as_opencv(noise({30, 20}, rng), size);
}

TEST(ResizeBilinear, GivesTheBytesOfOpenCvFromTheSmallestImages) {
  Rng rng{4};
  for (int width = 1; width <= 3; ++width)
    for (int height = 1; height <= 3; ++height)
      for (const auto size : {cv::Size(1, 1), cv::Size(7, 2), cv::Size(2, 7), cv::Size(40, 40)})
        expect_as_opencv(noise({width, height}, rng), size);
}

TEST(ResizeBilinear, StaysInsideAPartOfAnImage) {
  Rng rng{5};
  const auto image = noise({40, 30}, rng);
  cv::Mat canvas(60, 80, CV_8UC3, cv::Scalar::all(9));
  auto target = canvas(cv::Rect(10, 10, 50, 40));
  resize_bilinear(image(cv::Rect(5, 5, 20, 20)), target);
  cv::Mat expected;
  cv::resize(image(cv::Rect(5, 5, 20, 20)), expected, target.size(), 0, 0, cv::INTER_LINEAR);
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

}  // namespace
}  // namespace millrace
