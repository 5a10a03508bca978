#include "millrace/dataflow/image/buffer_pool.h"

#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <thread>

namespace millrace {
namespace {

TEST(PoolImages, UsesAnImagesMemoryAgain) {
  pool_images();
  const std::uint8_t* first = nullptr;
  for (int i = 0; i < 10; ++i) {
    const cv::Mat image(600, 800 + i, CV_8UC3);
    ASSERT_TRUE(image.isContinuous());
    if (i == 0) first = image.data;
    EXPECT_EQ(image.data, first);
  }
}

TEST(PoolImages, LeavesImagesAloneThatAreInUse) {
  pool_images();
  cv::Mat image(600, 800, CV_8UC3, cv::Scalar::all(7));
  const cv::Mat part = image(cv::Rect(0, 0, 10, 10)), other(600, 800, CV_8UC3, cv::Scalar::all(8));
  image.release();
  const cv::Mat third(600, 800, CV_8UC3, cv::Scalar::all(9));
  EXPECT_EQ(part.at<cv::Vec3b>(9, 9), cv::Vec3b::all(7));
  EXPECT_EQ(other.at<cv::Vec3b>(599, 799), cv::Vec3b::all(8));
}

TEST(PoolImages, TakesMemoryBackFromAnyThread) {
  pool_images();
  cv::Mat image(600, 800, CV_8UC3, cv::Scalar::all(7));
  const auto* where = image.data;
  std::thread([mine = std::move(image)]() mutable { mine.release(); }).join();
  EXPECT_EQ(cv::Mat(600, 800, CV_8UC3).data, where);
}

}  // namespace
}  // namespace millrace
