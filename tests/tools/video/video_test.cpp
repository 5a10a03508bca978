// Reads and writes videos: times, rotations, sizes, and files that are invalid, truncated or
// damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "millrace/base/files.h"
#include "tests/support/scratch.h"
#include "tests/support/videos.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

struct Read {
  VideoFacts facts;
  std::vector<std::int64_t> times;
  std::vector<Pixels> frames;
  std::string fault;
};

Read read_video(const std::filesystem::path& file) {
  const auto in = video_files().open(file.string());
  Read all{.facts = in->facts()};
  Pixels pixels(static_cast<std::size_t>(all.facts.width * all.facts.height * 3));
  while (const auto time = in->read(pixels.data())) {
    all.times.push_back(*time);
    all.frames.push_back(pixels);
  }
  all.fault = in->fault();
  return all;
}

/// Returns the error message of opening a file; empty if it can be opened.
std::string refusal(const std::filesystem::path& file) try {
  read_video(file);
  return "";
} catch (const std::runtime_error& problem) {
  return problem.what();
}

/// Returns the channels of the pixel at a column and row.
std::vector<int> at(const Read& video, std::size_t frame, int x, int y) {
  const auto* pixel = video.frames[frame].data() + 3 * (y * video.facts.width + x);
  return {pixel[0], pixel[1], pixel[2]};
}

bool is_near(const std::vector<int>& a, const std::vector<int>& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    if (std::abs(a[k] - b[k]) > 8) return false;
  return true;
}

TEST(Video, PreservesFrameTimes) {
  const Scratch scratch;
  const auto file = scratch / "a.mp4";
  const std::vector<std::int64_t> times = {0, 3000, 3500, 12000, 12001, 90000};
  write_video(file, 64, 48, times);
  const auto video = read_video(file);
  EXPECT_EQ(video.facts.width, 64);
  EXPECT_EQ(video.facts.height, 48);
  EXPECT_EQ(video.facts.frames, 6);
  EXPECT_EQ(video.times, times);
  EXPECT_EQ(video.facts.clock.denominator, 90000);
  EXPECT_EQ(video.fault, "");
  for (std::size_t k = 0; k < times.size(); ++k) {
    const int blue = static_cast<int>(k) * 20;
    EXPECT_TRUE(is_near(at(video, k, 4, 4), {200, 180, blue})) << k;
    EXPECT_TRUE(is_near(at(video, k, 60, 44), {20, 30, blue})) << k;
  }
}

TEST(Video, WritesSameBytesAgain) {
  const Scratch scratch;
  for (const auto* name : {"a.mp4", "b.mp4"}) write_video(scratch / name, 64, 48, even_times(9));
  EXPECT_EQ(read_file(scratch / "a.mp4"), read_file(scratch / "b.mp4"));
}

TEST(Video, WritesEvenWidthAndHeight) {
  const Scratch scratch;
  for (const auto& [width, height] : {std::pair{1, 1}, {65, 48}, {64, 49}, {7, 301}}) {
    write_video(scratch / "a.mp4", width, height, even_times(3));
    const auto video = read_video(scratch / "a.mp4");
    EXPECT_EQ(video.facts.width, width + width % 2);
    EXPECT_EQ(video.facts.height, height + height % 2);
    EXPECT_EQ(video.frames.size(), 3U);
  }
}

/// Sets the rotation in an MP4's header, clockwise in quarter turns.
void turn_in_head(const std::filesystem::path& file, int turns) {
  auto bytes = read_file(file);
  const auto head = bytes.find("tkhd");
  ASSERT_NE(head, bytes.npos);
  const auto matrix = head + 4 + 40;  // in version 0: a b u c d v x y w, 16.16
  const int cosine[] = {1, 0, -1, 0}, sine[] = {0, 1, 0, -1};
  const auto put = [&](std::size_t place, int value) {
    const auto fixed = static_cast<std::uint32_t>(value) << 16;
    for (std::size_t k = 0; k < 4; ++k)
      bytes[matrix + 4 * place + k] = static_cast<char>(fixed >> (24 - 8 * k));
  };
  put(0, cosine[turns]);
  put(1, sine[turns]);
  put(3, -sine[turns]);
  put(4, cosine[turns]);
  write_file_atomically(file, bytes);
}

TEST(Video, RespectsRotationInHeader) {
  const Scratch scratch;
  const auto file = scratch / "a.mp4";
  write_video(file, 64, 48, even_times(2));
  // Positions of the upper left corner after the rotation.
  const std::vector<std::pair<int, int>> corners = {{4, 4}, {43, 4}, {59, 43}, {4, 59}};
  for (int turns = 0; turns < 4; ++turns) {
    turn_in_head(file, turns);
    const auto video = read_video(file);
    EXPECT_EQ(video.facts.width, turns % 2 == 1 ? 48 : 64);
    EXPECT_EQ(video.facts.height, turns % 2 == 1 ? 64 : 48);
    const auto [x, y] = corners[static_cast<std::size_t>(turns)];
    EXPECT_TRUE(is_near(at(video, 1, x, y), {200, 180, 20})) << turns;
  }
}

TEST(Video, RejectsFilesThatAreNotVideos) {
  const Scratch scratch;
  EXPECT_THAT(refusal(scratch / "nosuch.mp4"), HasSubstr("No such file"));
  EXPECT_THAT(refusal(scratch.file("text.mp4", "hello")), HasSubstr("not a readable video"));
  EXPECT_THAT(refusal(scratch.file("empty.mp4", "")), HasSubstr("not a readable video"));
  // A WAV file has only sound.
  std::string sound(
      "RIFF\x2c\x01\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"
      "data\x08\x01\0\0",
      44);
  sound.append(264, '\0');
  EXPECT_THAT(refusal(scratch.file("sound.avi", sound)), HasSubstr("no video stream"));
}

TEST(Video, RejectsTruncatedFile) {
  const Scratch scratch;
  const auto file = scratch / "a.mp4";
  write_video(file, 64, 48, even_times(30));
  const auto whole = read_file(file);
  // The header of these files is at the end.
  EXPECT_THAT(refusal(scratch.file("cut.mp4", whole.substr(0, whole.size() / 2))),
              HasSubstr("not a readable video"));
}

TEST(Video, ReadsValidFramesOfDamagedVideo) {
  const Scratch scratch;
  const auto file = scratch / "a.mp4";
  write_video(file, 64, 48, even_times(30));
  const auto whole = read_file(file);
  const auto pixels = whole.find("mdat");
  ASSERT_NE(pixels, whole.npos);
  const auto end = whole.find("moov");
  ASSERT_LT(pixels, end);
  for (const double share : {0.3, 0.6}) {
    auto bytes = whole;
    const auto from =
        pixels + 8 + static_cast<std::size_t>(share * static_cast<double>(end - pixels));
    for (std::size_t k = from; k < end - 8; ++k) bytes[k] = static_cast<char>(k * 37);
    const auto video = read_video(scratch.file("b.mp4", bytes));
    EXPECT_NE(video.fault, "") << share;
    EXPECT_LE(video.frames.size(), 30U);
  }
}

TEST(Video, RecognizesVideosByExtension) {
  EXPECT_TRUE(is_video("a/b.MP4"));
  EXPECT_TRUE(is_video("b.mkv"));
  EXPECT_FALSE(is_video("mp4"));
  EXPECT_FALSE(is_video("b.jpg"));
}

}  // namespace
}  // namespace millrace::testing
