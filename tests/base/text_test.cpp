#include "millrace/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

const std::vector<std::string> kStages = {"flip", "crop", "resize"};

TEST(NearestName, ToleratesOneEdit) {
  for (const auto* word : {"flip", "fliip", "fip", "flap", "filp"})
    EXPECT_EQ(nearest_name(word, kStages), "flip") << word;
}

TEST(NearestName, IsEmptyIfNoneIsNear) {
  EXPECT_EQ(nearest_name("grayscale", kStages), "");
  EXPECT_EQ(nearest_name("flip", {}), "");
}

TEST(Suggestion, NamesNearestOrAll) {
  EXPECT_EQ(suggestion("fliip", kStages), "; did you mean 'flip'?");
  EXPECT_EQ(suggestion("grayscale", kStages), "; known: flip, crop, resize");
  EXPECT_THAT(suggestion("flip", {}), ::testing::HasSubstr("none"));
}

TEST(ByteText, UsesLargestFittingUnit) {
  EXPECT_EQ(byte_text(12 << 10), "12 KiB");
  EXPECT_EQ(byte_text(1 << 20), "1 MiB");
  EXPECT_EQ(byte_text(1.5 * (1 << 30)), "1.5 GiB");
}

TEST(DurationText, ShowsTenthsBelowOneMinute) {
  EXPECT_EQ(duration_text(0), "0.0 s");
  EXPECT_EQ(duration_text(3.21), "3.2 s");
  EXPECT_EQ(duration_text(123), "2:03");
  EXPECT_EQ(duration_text(3723), "1:02:03");
}

TEST(Counted, UsesPluralExceptForOne) {
  EXPECT_EQ(counted(0, "image"), "0 images");
  EXPECT_EQ(counted(1, "image"), "1 image");
  EXPECT_EQ(counted(2, "image"), "2 images");
}

TEST(Wildcards, MatchAnyCharacters) {
  for (const auto* pattern : {"a.b.c", "*", "a.*", "*.c", "a.*.c", "*b*", "**", "a*.b.c*"})
    EXPECT_TRUE(matches_wildcards(pattern, "a.b.c")) << pattern;
  for (const auto* pattern : {"", "a", "a.b", "b*", "*.b", "a.*.d", "a.b.c.*", "A.*"})
    EXPECT_FALSE(matches_wildcards(pattern, "a.b.c")) << pattern;
}

TEST(Wildcards, Backtrack) {
  EXPECT_TRUE(matches_wildcards("*ab", "aabab"));
  EXPECT_TRUE(matches_wildcards("*.bn*.weight", "layer1.bn1.x.bn2.weight"));
  EXPECT_FALSE(matches_wildcards("*ab", "aaba"));
  EXPECT_TRUE(matches_wildcards("", ""));
  EXPECT_TRUE(matches_wildcards("*", ""));
  EXPECT_FALSE(matches_wildcards("a", ""));
}

}  // namespace
}  // namespace millrace
