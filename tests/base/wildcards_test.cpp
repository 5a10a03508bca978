#include "millrace/base/wildcards.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Wildcards, StandForAnyCharacters) {
  for (const auto* pattern : {"a.b.c", "*", "a.*", "*.c", "a.*.c", "*b*", "**", "a*.b.c*"})
    EXPECT_TRUE(matches_wildcards(pattern, "a.b.c")) << pattern;
  for (const auto* pattern : {"", "a", "a.b", "b*", "*.b", "a.*.d", "a.b.c.*", "A.*"})
    EXPECT_FALSE(matches_wildcards(pattern, "a.b.c")) << pattern;
}

TEST(Wildcards, TakeAnotherTryBehindWhatLookedLikeTheEnd) {
  EXPECT_TRUE(matches_wildcards("*ab", "aabab"));
  EXPECT_TRUE(matches_wildcards("*.bn*.weight", "layer1.bn1.x.bn2.weight"));
  EXPECT_FALSE(matches_wildcards("*ab", "aaba"));
}

TEST(Wildcards, OfNothing) {
  EXPECT_TRUE(matches_wildcards("", ""));
  EXPECT_TRUE(matches_wildcards("*", ""));
  EXPECT_FALSE(matches_wildcards("a", ""));
}

}  // namespace
}  // namespace millrace
