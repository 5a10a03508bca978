// The bilinear resizes produce the same bytes as OpenCV and Pillow, and a lazy image equals an
// image that is mirrored and resized immediately.
#include "millrace/dataflow/image/lazy_image.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/image/bilinear.h"
#include "millrace/dataflow/image/bilinear_kernel.h"
#include "millrace/dataflow/image/image_file.h"
#include "tests/support/data.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"

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

/// Compares with OpenCV once for each kernel that this processor supports, and once without
/// kernels.
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

TEST(ResizeBilinear, MatchesOpenCv) {
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

TEST(ResizeBilinear, WritesOnlyIntoTarget) {
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

TEST(ResizeBilinear, RejectsUnsupportedImages) {
  cv::Mat rgb(4, 4, CV_8UC3), grey(4, 4, CV_8UC1), none;
  EXPECT_THROW(resize_bilinear(grey, rgb), std::invalid_argument);
  EXPECT_THROW(resize_bilinear(rgb, grey), std::invalid_argument);
  EXPECT_THROW(resize_bilinear(none, rgb), std::invalid_argument);
  EXPECT_THROW(resize_bilinear(rgb, none), std::invalid_argument);
}

TEST(ResizeAntialiased, UsesTriangleFilter) {
  const cv::Mat row = (cv::Mat_<std::uint8_t>(1, 4) << 0, 50, 100, 250);
  cv::Mat image, target(1, 2, CV_8UC3);
  cv::merge(std::vector<cv::Mat>(3, row), image);
  resize_antialiased(image, target);
  EXPECT_EQ(target.at<cv::Vec3b>(0, 0), cv::Vec3b(36, 36, 36));     // (3 x 0 + 3 x 50 + 100) / 7
  EXPECT_EQ(target.at<cv::Vec3b>(0, 1), cv::Vec3b(157, 157, 157));  // (50 + 3 x 100 + 3 x 250) / 7
}

/// Collects images and our resized versions for a Python script that compares these with Pillow's.
class ResizesForPillow {
 public:
  void add(const cv::Mat& image, cv::Size size) {
    cv::Mat target(size, CV_8UC3);
    resize_antialiased(image, target);
    const std::array<std::int32_t, 4> sides = {image.cols, image.rows, size.width, size.height};
    bytes_.append(reinterpret_cast<const char*>(sides.data()), sizeof sides);
    for (const auto& mat : {image, target})
      bytes_.append(reinterpret_cast<const char*>(mat.data), mat.total() * 3);
  }

  /// Returns 0 if Pillow produces the same bytes.
  int compare() const {
    const testing::Scratch scratch;
    const auto file = scratch.file("resizes", bytes_);
    const auto script = scratch.file("compare.py", R"(import struct, sys
from PIL import Image
data, at = open(sys.argv[1], "rb").read(), 0
while at < len(data):
    w, h, *size = struct.unpack_from("4i", data, at)
    image, end = at + 16, at + 16 + 3 * w * h
    at = end + 3 * size[0] * size[1]
    resized = Image.frombytes("RGB", (w, h), data[image:end]).resize(size, Image.BILINEAR)
    assert resized.tobytes() == data[end:at], (w, h, size)
)");
    return testing::run_python(script.string() + " " + file.string());
  }

 private:
  std::string bytes_;
};

TEST(ResizeAntialiased, MatchesPillow) {
  MILLRACE_NEEDS_PYTHON("PIL");
  ResizesForPillow all;
  Rng rng{3};
  const auto side = [&](int most) { return static_cast<int>(rng.between(1, most)); };
  for (int i = 0; i < 300; ++i) {
    const auto from = noise({side(90), side(90)}, rng);
    all.add(from, {i % 7 == 0 ? from.cols : side(200), i % 11 == 0 ? from.rows : side(200)});
  }
  for (const int width : {1, 2, 3})
    for (const int height : {1, 2, 3})
      for (const auto size : {cv::Size(1, 1), cv::Size(7, 2), cv::Size(2, 7), cv::Size(40, 40)})
        all.add(noise({width, height}, rng), size);
  all.add(noise({5000, 3}, rng), {1, 1});
  all.add(cv::Mat(70, 90, CV_8UC3, cv::Scalar::all(255)), {7, 101});
  EXPECT_EQ(all.compare(), 0);
}

TEST(ResizeAntialiased, MatchesPillowForPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_PYTHON("PIL");
  ResizesForPillow all;
  for (const auto& photo :
       std::filesystem::directory_iterator(testing::data_folder() / "coco_mini" / "val2017")) {
    const auto name = photo.path().string();
    const auto image = decode_rgb(read_file(name), name);
    for (const int side : {101, 200, 800})
      all.add(image, shortest_edge_size(image.size(), side, 1333));
  }
  EXPECT_EQ(all.compare(), 0);
}

TEST(ResizeAntialiased, WritesOnlyIntoTarget) {
  Rng rng{5};
  const auto image = noise({40, 30}, rng), part = image(cv::Rect(5, 5, 20, 20)).clone();
  for (const auto size : {cv::Size(50, 40), cv::Size(20, 9), cv::Size(9, 20), cv::Size(20, 20)}) {
    cv::Mat canvas(60, 80, CV_8UC3, cv::Scalar::all(9)), expected(size, CV_8UC3);
    auto target = canvas(cv::Rect({10, 10}, size));
    resize_antialiased(image(cv::Rect(5, 5, 20, 20)), target);
    resize_antialiased(part, expected);
    EXPECT_EQ(cv::norm(expected, target, cv::NORM_INF), 0);
    target.setTo(cv::Scalar::all(9));
    EXPECT_EQ(cv::norm(canvas, cv::Mat(60, 80, CV_8UC3, cv::Scalar::all(9)), cv::NORM_INF), 0);
  }
}

void expect_equal(const LazyImage& image, const cv::Mat& expected) {
  ASSERT_EQ(image.size(), expected.size());
  cv::Mat target(image.size(), CV_8UC3), looked_at = LazyImage(image).pixels();
  image.write_to(target);
  EXPECT_EQ(cv::norm(target, expected, cv::NORM_INF), 0);
  ASSERT_EQ(looked_at.size(), expected.size());
  EXPECT_EQ(cv::norm(looked_at, expected, cv::NORM_INF), 0);
}

TEST(LazyImage, ReturnsGivenImage) {
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
  EXPECT_EQ(image.bytes(), 40U * 30 * 3) << "pixels not accessed yet";
  image.mirror();
  expect_equal(image, resized(slope(40, 30), {70, 55}));
}

TEST(LazyImage, MirrorsAfterAntialiasedResize) {
  const auto from = slope(40, 30);
  cv::Mat expected(20, 13, CV_8UC3);
  resize_antialiased(from, expected);
  LazyImage image(from);
  image.resize({13, 20}, Resampling::pillow);
  expect_equal(image, expected);
  image.mirror();
  expect_equal(image, mirrored(expected));
}

TEST(LazyImage, RejectsTargetOfWrongSizeOrType) {
  const LazyImage image(slope(40, 30));
  for (auto target :
       {cv::Mat(30, 40, CV_8UC1), cv::Mat(30, 40, CV_32FC3), cv::Mat(40, 30, CV_8UC3)})
    EXPECT_THROW(image.write_to(target), std::invalid_argument);
}

TEST(LazyImage, AppliesChangesWhenRead) {
  LazyImage image(slope(40, 30));
  image.mirror();
  image.resize({70, 55});
  auto& pixels = image.pixels();
  pixels.at<cv::Vec3b>(0, 0) = {1, 2, 3};
  EXPECT_EQ(image.pixels().at<cv::Vec3b>(0, 0), cv::Vec3b(1, 2, 3));
  image.pixels() = slope(9, 8);
  expect_equal(image, slope(9, 8));
}

TEST(LazyImage, ScalesReducedPixelsToFullSize) {
  const LazyImage full(slope(40, 30), {160, 120});
  EXPECT_EQ(full.size(), cv::Size(160, 120));
  expect_equal(full, resized(slope(40, 30), {160, 120}));
  auto smaller = full;
  smaller.resize({50, 40});
  expect_equal(smaller, resized(slope(40, 30), {50, 40}));
}

TEST(LazyImage, IsUnchangedIfCopyIsMirrored) {
  const LazyImage original(slope(40, 30));
  auto copy = original;
  copy.mirror();
  copy.pixels().setTo(0);
  expect_equal(original, slope(40, 30));
}

}  // namespace
}  // namespace millrace
