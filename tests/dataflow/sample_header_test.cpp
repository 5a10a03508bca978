// sample.h compiles and works without other headers. This file is compiled alone to test that.
#include "millrace/dataflow/detection/sample.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(SampleHeader, DefinesMessageNamesAndMemory) {
  EXPECT_EQ(MessageName<Sample>::get(), "sample");
  EXPECT_EQ(MessageName<Batch>::get(), "batch");
  EXPECT_EQ(MessageName<std::vector<Sample>>::get(), "group of samples");
  Batch batch;
  batch.width = 4;
  batch.height = 3;
  batch.images.resize(2);
  EXPECT_EQ(MessageBytes<Batch>::get(batch), 72U);
  EXPECT_EQ(MessageBytes<Sample>::get(Sample()), 0U);
}

}  // namespace
}  // namespace millrace
