#include "millrace/dataflow/image/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <opencv2/core.hpp>
#include <thread>
#include <vector>

namespace millrace {
namespace {

TEST(BufferPool, ReusesReleasedBuffers) {
  const BufferPool pool;
  auto first = pool.acquire(1000);
  const auto* where = first.get();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(where) % 64, 0U);
  auto second_owner = first;
  first.reset();
  EXPECT_NE(pool.acquire(1000).get(), where);
  second_owner.reset();
  const auto allocated = pool.bytes();
  for (int i = 0; i < 100; ++i) pool.acquire(900 + i);
  EXPECT_EQ(pool.bytes(), allocated);
}

TEST(BufferPool, FreesExcessIdleBuffers) {
  const BufferPool pool;
  { const std::vector<std::shared_ptr<std::uint8_t[]>> many{100, pool.acquire(1)}; }
  std::vector<std::shared_ptr<std::uint8_t[]>> out;
  for (int i = 0; i < 100; ++i) out.push_back(pool.acquire(1));
  EXPECT_EQ(pool.bytes(), 100U << 20);
  out.clear();
  EXPECT_LE(pool.bytes(), 16U << 20);
}

TEST(BufferPool, MayBeDestroyedBeforeItsBuffers) {
  int live = 0;
  std::shared_ptr<std::uint8_t[]> buffer;
  {
    const BufferPool pool({[&](std::size_t bytes) { return ++live, std::malloc(bytes); },
                           [&](void* memory) { --live, std::free(memory); }});
    buffer = pool.acquire(10);
  }
  buffer[9] = 1;
  EXPECT_EQ(live, 1);
  buffer.reset();
  EXPECT_EQ(live, 0);
}

class PoolImages : public ::testing::Test {
 protected:
  void SetUp() override { prepare_opencv(); }
};

TEST_F(PoolImages, ReusesImageMemory) {
  const std::uint8_t* first = nullptr;
  for (int i = 0; i < 10; ++i) {
    const cv::Mat image(600, 800 + i, CV_8UC3);
    ASSERT_TRUE(image.isContinuous());
    if (i == 0) first = image.data;
    EXPECT_EQ(image.data, first);
  }
}

TEST_F(PoolImages, KeepsImagesInUse) {
  cv::Mat image(600, 800, CV_8UC3, cv::Scalar::all(7));
  const cv::Mat part = image(cv::Rect(0, 0, 10, 10)), other(600, 800, CV_8UC3, cv::Scalar::all(8));
  image.release();
  const cv::Mat third(600, 800, CV_8UC3, cv::Scalar::all(9));
  EXPECT_EQ(part.at<cv::Vec3b>(9, 9), cv::Vec3b::all(7));
  EXPECT_EQ(other.at<cv::Vec3b>(599, 799), cv::Vec3b::all(8));
}

TEST_F(PoolImages, ReusesMemoryReleasedByOtherThread) {
  cv::Mat image(600, 800, CV_8UC3, cv::Scalar::all(7));
  const auto* where = image.data;
  std::thread([mine = std::move(image)]() mutable { mine.release(); }).join();
  EXPECT_EQ(cv::Mat(600, 800, CV_8UC3).data, where);
}

}  // namespace
}  // namespace millrace
