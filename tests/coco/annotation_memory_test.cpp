// The peak memory of reading annotations with a spill folder depends on the number of images and
// objects, not on the size of the outlines.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <tbb/task_arena.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "millrace/base/files.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/coco/data/readers.h"
#include "tests/support/scratch.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;

constexpr int kImages = 2000, kObjects = 20;  // kObjects per image

/// Writes annotations of the same objects with `points` points per outline. The images section is
/// at the end of the file.
void write_set(const fs::path& file, int points) {
  std::string outline;
  for (int i = 0; i < points; ++i)
    outline += fmt::format("{}{}.25,{}.5", i > 0 ? "," : "", i % 600, i * 7 % 400);
  std::ofstream out(file);
  out << R"({"categories":[{"id":1,"name":"c"}],"annotations":[)";
  for (int i = 0; i < kImages * kObjects; ++i)
    out << (i > 0 ? ",\n" : "")
        << fmt::format(
               R"({{"id":{},"image_id":{},"category_id":1,"bbox":[1,2,3,4],"segmentation":[[{}]]}})",
               kImages * kObjects - i, i % kImages, outline);
  out << R"(],"images":[)";
  for (int i = 0; i < kImages; ++i)
    out << (i > 0 ? "," : "")
        << fmt::format(R"({{"id":{0},"width":640,"height":480,"file_name":"{0}.jpg"}})", i);
  out << "]}";
}

/// Runs in a child process; see peak_of().
TEST(AnnotationMemoryProcess, DISABLED_Reads) {
  const fs::path json = std::getenv("MILLRACE_TEST_JSON");
  tbb::task_arena(2).execute([&] {
    auto records = read_pieces(InputFile(json), kPieceBytes, Spill{json.parent_path()});
    ASSERT_TRUE(records);
    const auto data = assemble(std::move(*records), json.string());
    EXPECT_EQ(data->annotations.size(), std::size_t{kImages} * kObjects);
    std::ofstream(json.string() + ".peak") << peak_rss_bytes();
  });
}

/// Returns the peak resident memory, in bytes, of a process that reads the file.
std::int64_t peak_of(const fs::path& json) {
  ::setenv("MILLRACE_TEST_JSON", json.c_str(), 1);
  std::string self = "/proc/self/exe", filter = "--gtest_filter=AnnotationMemoryProcess.*",
              disabled = "--gtest_also_run_disabled_tests", quiet = "--gtest_brief=1";
  char* arguments[] = {self.data(), filter.data(), disabled.data(), quiet.data(), nullptr};
  pid_t process = -1;
  int status = -1;
  EXPECT_EQ(::posix_spawn(&process, self.c_str(), nullptr, nullptr, arguments, environ), 0);
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
  return std::stoll(read_file(json.string() + ".peak"));
}

TEST(AnnotationMemory, IsIndependentOfOutlineSize) {
  const testing::Scratch scratch;
  const auto small = scratch / "small.json", large = scratch / "large.json";
  write_set(small, 40);
  write_set(large, 500);
  const auto added = fs::file_size(large) - fs::file_size(small);
  ASSERT_GT(added, std::uint64_t{150} << 20);
  const auto peak_of_small = peak_of(small);
  EXPECT_LT(peak_of(large) - peak_of_small, std::int64_t{24} << 20);
}

}  // namespace
}  // namespace millrace::coco
