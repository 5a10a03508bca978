// The example that feeds a classifier. The engine's guarantees also hold for its message types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <opencv2/core.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/pictures.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using Lines = std::vector<std::string>;

/// Three classes with 8, 16 and 24 images; each image has its own grey value: 10, 11, ...
class Classification : public ::testing::Test {
 protected:
  Classification() {
    int grey = 10;
    for (const auto& [label, count] :
         std::map<std::string, int>{{"ant", 8}, {"bee", 16}, {"cow", 24}}) {
      fs::create_directory(folder_ / label);
      for (int i = 0; i < count; ++i, ++grey)
        save_picture(folder_ / label / (std::to_string(i) + ".png"),
                     cv::Mat(60 + 3 * i, 90, CV_8UC3, cv::Scalar::all(grey)));
    }
  }

  /// Returns the lines that the program prints, followed by its exit status as a last line.
  Lines run(int batches, int threads, int from = 0) const {
    const auto command = std::string(CLASSIFICATION) + " " + folder_.string() + " " +
                         std::to_string(batches) + " " + std::to_string(threads) + " " +
                         std::to_string(from) + " 2>&1";
    auto* pipe = popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> piece;
    while (const auto got = fread(piece.data(), 1, piece.size(), pipe))
      text.append(piece.data(), got);
    Lines lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    lines.push_back(std::to_string(WEXITSTATUS(pclose(pipe))));
    return lines;
  }

  Scratch scratch_;
  fs::path folder_ = scratch_.path();
};

TEST_F(Classification, DoesNotDependOnThreadCount) {
  const auto expected = run(20, 1);
  ASSERT_EQ(expected.size(), 21U);
  EXPECT_EQ(expected.back(), "0");
  EXPECT_EQ(run(20, 2), expected);
  EXPECT_EQ(run(20, 8), expected);
}

TEST_F(Classification, ReturnsEachImageOncePerEpoch) {
  auto lines = run(3 * 48 / 8, 2);
  ASSERT_EQ(lines.back(), "0");
  lines.pop_back();
  std::map<std::string, int> seen;  // "label:grey"
  for (const auto& line : lines) {
    std::istringstream words(line);
    std::string word;
    words >> word;  // the digest
    while (words >> word) ++seen[word];
  }
  ASSERT_EQ(seen.size(), 48U);
  for (int grey = 10; grey < 58; ++grey) {
    const int label = grey < 18 ? 0 : grey < 34 ? 1 : 2;
    EXPECT_EQ(seen[std::to_string(label) + ":" + std::to_string(grey)], 3) << grey;
  }
}

TEST_F(Classification, ResumesWhereItStopped) {
  const auto whole = run(14, 2);
  for (const int from : {1, 5, 6, 9}) {
    const auto rest = run(14 - from, 2, from);
    EXPECT_EQ(rest, Lines(whole.begin() + from, whole.end())) << from;
  }
}

TEST_F(Classification, ReportsMissingImages) {
  fs::remove_all(folder_);
  fs::create_directory(folder_);
  EXPECT_THAT(run(1, 1).front(), HasSubstr("sample"));
}

}  // namespace
}  // namespace millrace::testing
