#include <gtest/gtest.h>

#include "tests/models/small_batch.h"
#include "tests/yolox/reference.h"

namespace millrace::yolox {
namespace {

TEST(Yolox, OfImagesWithoutObjectsLearnsThatThereAreNone) {
  auto batch = testing::small_batch();
  batch.objects = {{}, {}};
  const auto model = by_formula("plain");
  const auto losses = model->losses(batch, {});
  ASSERT_EQ(losses.size(), 3U);
  EXPECT_EQ(losses[0].second.item<double>(), 0);
  EXPECT_GT(losses[1].second.item<double>(), 0);
  EXPECT_EQ(losses[2].second.item<double>(), 0);
}

}  // namespace
}  // namespace millrace::yolox
