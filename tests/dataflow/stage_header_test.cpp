// What each public header of a stage gives by itself; so this file is compiled alone.
#include "millrace/dataflow/detection/sample.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(SampleHeader, NamesItsMessagesAndTheirMemory) {
  EXPECT_EQ(MessageType::of<Sample>().name, "sample");
  EXPECT_EQ(MessageType::of<Batch>().name, "batch");
  EXPECT_EQ(MessageType::of<std::vector<Sample>>().name, "group of samples");
  Batch batch;
  batch.width = 4;
  batch.height = 3;
  batch.images.resize(2);
  EXPECT_EQ(MessageBytes<Batch>::get(batch), 72U);
  EXPECT_EQ(MessageBytes<Sample>::get(Sample()), 0U);
}

}  // namespace
}  // namespace millrace
