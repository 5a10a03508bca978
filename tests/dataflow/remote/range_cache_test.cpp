// The cache of remote files stays within its limit and returns the bytes that were stored.
#include "millrace/dataflow/store/remote/range_cache.h"

#include <gtest/gtest.h>

#include "tests/support/scratch.h"

namespace millrace {
namespace {

using testing::Scratch;

TEST(RangeCache, ReturnsRangesStoredByOtherInstances) {
  const Scratch scratch;
  RangeCache cache(scratch / "cache", 1000);
  EXPECT_FALSE(cache.get("a"));
  cache.put("a", "first");
  cache.put("b", std::string("\0second", 7));
  EXPECT_EQ(cache.get("a"), "first");
  const RangeCache other(scratch / "cache", 1000);
  EXPECT_EQ(other.get("b"), std::string("\0second", 7));
}

TEST(RangeCache, KeepsSizeWithinMaximum) {
  const Scratch scratch;
  const std::string part(40, 'x');
  for (int round = 0; round < 2; ++round) {
    RangeCache cache(scratch / "cache", 100);
    int kept = 0;
    for (int i = 0; i < 5; ++i) {
      cache.put(std::to_string(i), part);
      kept += cache.get(std::to_string(i)).has_value();
    }
    EXPECT_EQ(kept, 2) << "round " << round;
    EXPECT_TRUE(cache.get("0")) << "stored ranges must stay";
  }
  RangeCache cache(scratch / "cache", 100);
  cache.remove("0");
  cache.put("new", part);
  EXPECT_TRUE(cache.get("new"));
}

TEST(RangeCache, ContinuesIfFolderIsUnwritable) {
  const Scratch scratch;
  RangeCache cache(scratch / "cache", 1000);
  std::filesystem::remove_all(scratch / "cache");
  scratch.file("cache", "no folder");
  cache.put("a", "first");
  EXPECT_FALSE(cache.get("a"));
}

}  // namespace
}  // namespace millrace
