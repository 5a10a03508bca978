// Properties of drawn images that hold for any visual design.
#include "millrace/coco/drawing/draw.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <tuple>

#include "tests/support/pictures.h"

namespace millrace::coco {
namespace {

const std::vector<std::string> kNames = {"star", "ring"};

cv::Mat grey(int width, int height) { return {height, width, CV_8UC3, cv::Scalar(128, 128, 128)}; }

Rle rectangle(std::uint32_t height, std::uint32_t width, const cv::Rect& inside) {
  cv::Mat1b bitmap(static_cast<int>(height), static_cast<int>(width), std::uint8_t{0});
  bitmap(inside) = 1;
  return encode(bitmap.data, height, width);
}

TEST(Draw, UsesDistinctColoursForFirstLabels) {
  std::set<std::tuple<int, int, int>> colours;
  for (int label = 0; label < 91; ++label) {
    const auto colour = label_colour(label);
    colours.emplace(colour[0], colour[1], colour[2]);
  }
  EXPECT_EQ(colours.size(), 91U);
}

TEST(Draw, CopiesImageWithoutObjects) {
  const auto image = grey(640, 480), before = image.clone();
  draw_objects(image, std::vector<Overlay>{{.box = {10, 10, 100, 100}}}, kNames);
  EXPECT_EQ(cv::norm(image, before, cv::NORM_INF), 0);
  EXPECT_EQ(cv::norm(image, draw_objects(image, {}, kNames), cv::NORM_INF), 0);
}

TEST(Draw, EnlargesSmallImages) {
  EXPECT_EQ(draw_objects(grey(160, 120), {}, kNames).size(), cv::Size(640, 480));
  EXPECT_EQ(draw_objects(grey(900, 700), {}, kNames).size(), cv::Size(900, 700));
  EXPECT_EQ(draw_objects(grey(300, 30), {}, kNames).size(), cv::Size(1920, 192));
  EXPECT_EQ(draw_objects(grey(9, 3000), {}, kNames).size(), cv::Size(9, 3000));
}

TEST(Draw, AcceptsAnyImageShape) {
  const auto both = side_by_side(grey(600, 500), "left", grey(700, 550), "right");
  EXPECT_GE(both.cols, 1300);
  EXPECT_GE(both.rows, 550);
  const std::filesystem::path file = ::testing::TempDir() + "narrow.jpg";
  for (const auto size : {cv::Size(3000, 9), cv::Size(9, 3000), cv::Size(1, 1), cv::Size(20000, 1),
                          cv::Size(40000, 2)}) {
    const std::vector<Overlay> objects = {
        {.box = {0, 0, float(size.width) / 2, float(size.height)},
         .score = 0.9F,
         .mask = rectangle(static_cast<std::uint32_t>(size.height),
                           static_cast<std::uint32_t>(size.width), {0, 0, 1, 1})}};
    const auto picture = draw_objects(grey(size.width, size.height), objects, kNames);
    write_picture(file, side_by_side(picture, "found", picture, "annotated"));
    EXPECT_FALSE(testing::picture_in(file).empty()) << size;
  }
  std::filesystem::remove(file);
}

TEST(Draw, StacksPictures) {
  const auto top = grey(60, 20), bottom = grey(90, 30);
  const cv::Mat3b both = above(top, bottom);
  EXPECT_EQ(both.cols, 90);
  EXPECT_GT(both.rows, 50);
  EXPECT_EQ(both(19, 59), cv::Vec3b(128, 128, 128));
  EXPECT_EQ(both(both.rows - 30, 89), cv::Vec3b(128, 128, 128));
  EXPECT_NE(both(0, 60), cv::Vec3b(128, 128, 128));
}

TEST(Draw, TintsMaskWithLabelColour) {
  const std::vector<Overlay> objects = {{.box = {100, 100, 300, 300},
                                         .label = 1,
                                         .score = 0.9F,
                                         .mask = rectangle(480, 640, {100, 100, 200, 200})}};
  const cv::Mat3b picture = draw_objects(grey(640, 480), objects, kNames);
  const auto inside = picture(200, 200), outside = picture(400, 500), colour = label_colour(1);
  EXPECT_EQ(outside, cv::Vec3b(128, 128, 128));
  for (int c = 0; c < 3; ++c) EXPECT_EQ(inside[c] > 128, colour[c] > 128);
}

TEST(Draw, AcceptsOutsideBoxesAndUnknownLabels) {
  const std::vector<Overlay> objects = {{.box = {-500, -500, -400, -400}, .label = 7},
                                        {.box = {630, 470, 5000, 5000}, .crowd = true},
                                        {.box = {5, 5, 5, 5}, .label = -1}};
  EXPECT_EQ(draw_objects(grey(640, 480), objects, kNames).size(), cv::Size(640, 480));
}

}  // namespace
}  // namespace millrace::coco
