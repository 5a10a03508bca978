#include "millrace/trainer/checkpoint/checkpoint_holds.h"

#include <gtest/gtest.h>

namespace millrace::testing {
namespace {

TEST(CheckpointHolds, LastAsLongAsOneHandleLives) {
  CheckpointHolds holds;
  auto one = holds.hold(3), other = holds.hold(3);
  EXPECT_TRUE(holds.is_held(3));
  EXPECT_FALSE(holds.is_held(2));
  one.reset();
  EXPECT_TRUE(holds.is_held(3));
  other.reset();
  EXPECT_FALSE(holds.is_held(3));
}

TEST(CheckpointHolds, LastUntilANewerCheckpointIsWholeThatNeedsThemNoMore) {
  CheckpointHolds holds;
  auto hold = holds.hold(3);
  holds.taken();
  hold.reset();
  holds.whole();
  EXPECT_TRUE(holds.is_held(3)) << "who resumes from the newest checkpoint asks for it again";
  holds.taken();
  EXPECT_TRUE(holds.is_held(3)) << "the next one may never become whole";
  holds.whole();
  EXPECT_FALSE(holds.is_held(3));
}

}  // namespace
}  // namespace millrace::testing
