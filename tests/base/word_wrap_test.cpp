#include "millrace/base/word_wrap.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

namespace millrace {
namespace {

TEST(Wrapped, BreaksBetweenWordsAndIndents) {
  EXPECT_EQ(wrapped("one two three four", 9, "  "), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("exactly ten", 11, "  "), "exactly ten");
  EXPECT_EQ(wrapped("", 9, "  "), "");
}

TEST(Printable, EscapesControlCharactersExceptLineBreaksAndTabs) {
  EXPECT_EQ(printable("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(printable("\x1b[2Jx\r\x7f\xc2\x9b"), "\\x1b[2Jx\\x0d\\x7f\\x9b");
  EXPECT_EQ(printable("na\xc3\xafve \xe2\x98\x83"), "na\xc3\xafve \xe2\x98\x83");
  EXPECT_LT(printable(std::string(1000000, 'x')).size(), 270000U);
}

TEST(WithoutControls, KeepsJsonValid) {
  EXPECT_EQ(without_controls("[\"\x7f\xc2\x85\"]\n", "\\u00"), "[\"\\u007f\\u0085\"]\n");
  EXPECT_EQ(without_controls("\xc2\xa9\xc2"), "\xc2\xa9\xc2");
}

TEST(Wrapped, KeepsFittingLinesAndIndents) {
  const auto* table = "      AP  AP50\n  box  1     2\n\n";
  EXPECT_EQ(wrapped(table, 14, "    "), table);
  EXPECT_EQ(wrapped("    - first second\nnext", 12, "      "), "    - first\n      second\nnext");
}

TEST(Wrapped, KeepsLongWordsWhole) {
  EXPECT_EQ(wrapped("see /a/very/long/path there", 8, "  "), "see\n  /a/very/long/path\n  there");
  EXPECT_EQ(wrapped("    /a/very/long/path", 8, "    "), "    /a/very/long/path");
}

TEST(Wrapped, KeepsEveryWord) {
  std::mt19937 draw(1);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (auto words = draw() % 30; words > 0; --words)
      text += std::string(1 + draw() % 12, 'a' + static_cast<char>(draw() % 26)) +
              std::string(1 + draw() % 3, ' ');
    const auto columns = 1 + draw() % 40;
    const auto result = wrapped(text, columns, std::string(draw() % 9, ' '));
    std::istringstream before(text), after(result);
    std::string expected, word;
    while (before >> expected) {
      ASSERT_TRUE(after >> word) << text;
      EXPECT_EQ(word, expected);
    }
    EXPECT_FALSE(after >> word);
    std::istringstream lines(result);
    for (std::string line; std::getline(lines, line);) {
      line.erase(line.find_last_not_of(' ') + 1);
      const bool is_one_word = line.find(' ', line.find_first_not_of(' ')) == line.npos;
      EXPECT_TRUE(line.size() <= columns || is_one_word) << line;
    }
  }
}

}  // namespace
}  // namespace millrace
