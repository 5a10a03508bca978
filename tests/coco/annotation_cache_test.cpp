// The annotation cache contains the same data set as the file, or it is not used.
#include "millrace/coco/data/annotation_cache.h"

#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <optional>
#include <tuple>

#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "tests/coco/datasets.h"
#include "tests/support/data.h"
#include "tests/support/log.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Log;
using testing::Scratch;
using ::testing::SizeIs;

/// Sets or removes an environment variable during its lifetime.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* set = std::getenv(name)) before_ = set;
    apply(value);
  }
  Variable(const Variable&) = delete;
  ~Variable() { apply(before_); }

 private:
  void apply(const std::optional<std::string>& value) const {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

std::vector<fs::path> files_in(const fs::path& folder) {
  if (!fs::exists(folder)) return {};
  return {fs::directory_iterator(folder), fs::directory_iterator()};
}

/// Reads a data set and waits until its cache is written.
std::shared_ptr<const Dataset> read_and_cache(const fs::path& json) {
  auto data = read_dataset_cached(json);
  finish_caching();
  return data;
}

/// Pads JSON to the minimum size of files that are cached.
std::string padded(std::string json) {
  json.resize(std::max<std::size_t>(json.size(), kLeastCached), ' ');
  return json;
}

class AnnotationCache : public ::testing::Test {
 protected:
  fs::path cached() const {
    const auto files = files_in(scratch_ / "cache");
    return files.size() == 1 ? files[0] : fs::path();
  }

  Scratch scratch_;
  const fs::path json_ = scratch_.file("x.json", padded(RandomFile(1).json()));
  Variable folder_{"MILLRACE_CACHE", (scratch_ / "cache").string()};
  Log log_;
};

TEST_F(AnnotationCache, EqualsFile) {
  std::vector<std::string> texts;
  for (unsigned seed = 1; seed <= 4; ++seed)
    texts.push_back(RandomFile(seed, seed == 4 ? 8000 : 400).json());
  texts.push_back(R"({"images": [], "annotations": [], "categories": []})");
  for (const auto& text : texts) {
    const auto json = scratch_.file("x.json", padded(text));
    const auto expected = read_dataset(json);
    expect_equal(*read_and_cache(json), *expected);
    EXPECT_THAT(log_.take(), AllOf(HasSubstr("info " + json.string()),
                                   HasSubstr((scratch_ / "cache").string())));
    const auto again = read_and_cache(json);
    EXPECT_EQ(log_.take(), "");
    EXPECT_EQ(again->source, json.string());
    expect_equal(*again, *expected);
  }
  EXPECT_THAT(files_in(scratch_ / "cache"), SizeIs(texts.size()));
}

TEST_F(AnnotationCache, EqualsFileForRealPhotos) {
  MILLRACE_NEEDS_DATA("eval");
  for (const auto* name :
       {"coco_mini/annotations/instances_train2017.json",
        "coco_mini/annotations/instances_val2017.json",
        "eval/cocoapi100/instances_val2014_100.json", "eval/syn_A_val/gt.json"}) {
    const auto json = scratch_.file("x.json", padded(read_file(testing::data_folder() / name)));
    const auto expected = read_dataset(json);
    read_and_cache(json);
    expect_equal(*read_and_cache(json), *expected);
  }
}

TEST_F(AnnotationCache, DependsOnContentNotName) {
  read_and_cache(json_);
  log_.take();
  fs::rename(json_, scratch_ / "y.json");
  EXPECT_EQ(read_and_cache(scratch_ / "y.json")->source, (scratch_ / "y.json").string());
  EXPECT_EQ(log_.take(), "");
}

TEST_F(AnnotationCache, DetectsChangeWithSameSizeAndTime) {
  read_and_cache(json_);
  const auto time = fs::last_write_time(json_);
  auto text = read_file(json_);
  const auto area = text.find_first_of("0123456789", text.find("\"area\":"));
  text[area] = text[area] == '9' ? '8' : '9';
  scratch_.file("x.json", text);
  fs::last_write_time(json_, time);
  expect_equal(*read_and_cache(json_), *parse_dataset(text, "x"));
  EXPECT_THAT(files_in(scratch_ / "cache"), SizeIs(2));
}

TEST_F(AnnotationCache, IsRebuiltIfDamaged) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1, 60).json()));
  const auto expected = read_dataset(json);
  read_and_cache(json);
  const auto file = cached();
  const auto whole = read_file(file);
  const auto expect_made_anew = [&](const std::string& damaged, const std::string& why = "") {
    // Replaces the file, since readers may have mapped the old one.
    fs::rename(scratch_.file("damaged", damaged), file);
    log_.take();
    expect_equal(*read_and_cache(json), *expected);
    const auto told = log_.take();
    EXPECT_THAT(told,
                AllOf(HasSubstr("warning "), HasSubstr(file.string() + "; "), HasSubstr(why)));
    // The second line names the new cache.
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 2) << told;
    EXPECT_TRUE(read_file(file) == whole);
  };

  const auto flipped = [](std::string bytes, std::size_t byte, unsigned bit) {
    bytes[byte] = static_cast<char>(bytes[byte] ^ (1 << bit % 8));
    return bytes;
  };
  for (std::size_t byte = 0; byte < 192; ++byte)  // the header and more
    expect_made_anew(flipped(whole, byte, byte % 8));
  for (const std::size_t size : {0UL, 1UL, 100UL, 200UL, whole.size() / 2, whole.size() - 1})
    expect_made_anew(whole.substr(0, size));
  expect_made_anew(whole.substr(0, 20), ": truncated");
  expect_made_anew(whole + '\0', ": wrong length");
  expect_made_anew("hello", ": truncated");
  expect_made_anew(std::string(whole.size(), 'x'), ": not an annotation cache");
  expect_made_anew(flipped(whole, 8, 0), "byte order");
  expect_made_anew(flipped(whole, 12, 0), "version");
  expect_made_anew(flipped(whole, whole.size() - 1, 0), "checksum");

  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    auto damaged = whole;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips)
      damaged = flipped(damaged, random() % damaged.size(), random());
    if (damaged != whole) expect_made_anew(damaged);
  }
}

TEST_F(AnnotationCache, RejectsCacheOfDifferentContent) {
  const auto other = scratch_.file("other.json", padded(RandomFile(2).json()));
  read_and_cache(other);
  const auto foreign = read_file(cached());
  fs::remove_all(scratch_ / "cache");
  read_and_cache(json_);
  fs::rename(scratch_.file("foreign", foreign), cached());
  log_.take();
  expect_equal(*read_and_cache(json_), *read_dataset(json_));
  EXPECT_THAT(log_.take(), HasSubstr("other content"));
}

TEST_F(AnnotationCache, SkipsFilesWithErrors) {
  const auto json =
      scratch_.file("x.json", padded(R"({"images": [], "annotations": [7], "categories": []})"));
  for (int i = 0; i < 2; ++i) MILLRACE_EXPECT_ERROR(read_and_cache(json), json, "annotations[0] ");
  EXPECT_THAT(files_in(scratch_ / "cache"), IsEmpty());
  MILLRACE_EXPECT_ERROR(read_and_cache(scratch_ / "none.json"), scratch_ / "none.json",
                        "No such file");
}

TEST_F(AnnotationCache, SkipsSmallFiles) {
  const auto json = scratch_.file("x.json", RandomFile(1).json());
  expect_equal(*read_and_cache(json), *read_dataset(json));
  EXPECT_FALSE(fs::exists(scratch_ / "cache"));
}

TEST_F(AnnotationCache, UsesFolderFromEnvironment) {
  const Variable unnamed("MILLRACE_CACHE", {});
  const Variable home("HOME", (scratch_ / "home").string());
  {
    const Variable caches("XDG_CACHE_HOME", (scratch_ / "xdg").string());
    read_and_cache(json_);
    EXPECT_THAT(files_in(scratch_ / "xdg" / "millrace"), SizeIs(1));
  }
  const Variable none("XDG_CACHE_HOME", {});
  read_and_cache(json_);
  EXPECT_THAT(files_in(scratch_ / "home" / ".cache" / "millrace"), SizeIs(1));
  const Variable off("MILLRACE_CACHE", "off");
  fs::remove_all(scratch_ / "home");
  read_and_cache(json_);
  EXPECT_FALSE(fs::exists(scratch_ / "home"));
}

TEST_F(AnnotationCache, WarnsOnceIfFolderIsUnwritable) {
  const Variable unnamed("MILLRACE_CACHE", {});
  const Variable caches("XDG_CACHE_HOME",
                        json_.string());  // a path below a file, which not even root can create
  expect_equal(*read_and_cache(json_), *read_dataset(json_));
  EXPECT_THAT(log_.take(), AllOf(HasSubstr("warning "), HasSubstr(json_.string() + "/millrace"),
                                 HasSubstr("MILLRACE_CACHE")));
  expect_equal(*read_and_cache(json_), *read_dataset(json_));
  EXPECT_EQ(log_.take(), "");
}

TEST_F(AnnotationCache, RejectsUnwritableFolderFromVariable) {
  const Variable named("MILLRACE_CACHE", json_.string() + "/cache");
  EXPECT_THAT([&] { read_and_cache(json_); },
              ::testing::ThrowsMessage<ConfigError>(AllOf(
                  HasSubstr("MILLRACE_CACHE: " + json_.string() + "/cache"), HasSubstr("'off'"))));
}

TEST_F(AnnotationCache, IsWrittenInBackground) {
  auto data = read_dataset_cached(json_);
  const auto again = read_dataset_cached(json_);  // from the cache or from the file
  expect_equal(*again, *data);
  data.reset();
  finish_caching();
  expect_equal(*read_dataset_cached(json_), *again);
  EXPECT_THAT(files_in(scratch_ / "cache"), SizeIs(1));
}

TEST_F(AnnotationCache, SkipsVerificationOfUnchangedLargeFiles) {
  const auto read = [&] {
    auto data = read_dataset_cached(json_, /*least_trusted=*/0);
    finish_caching();
    return data;
  };
  const auto changed = std::chrono::system_clock::now();
  const auto expected = read_dataset(json_);
  ASSERT_TRUE(testing::wait_until([&] {  // a test cannot set a file's ctime
    return std::chrono::system_clock::now() - changed > std::chrono::milliseconds(2100);
  }));
  expect_equal(*read(), *expected);
  const auto files = files_in(scratch_ / "cache");
  ASSERT_THAT(files, SizeIs(2));
  const auto file = files[files[0].extension() == ".seen"];
  log_.take();

  // Overwrites a byte of the last name, which only a checksum can detect.
  const auto flip = [&](bool keep_time) {
    const auto time = fs::last_write_time(file);
    std::fstream open(file, std::ios::in | std::ios::out | std::ios::binary);
    open.seekp(-1, std::ios::end);
    open.put('\0');
    open.close();
    fs::last_write_time(file, keep_time ? time : time + std::chrono::seconds(1));
  };
  flip(/*keep_time=*/true);
  EXPECT_EQ(read()->names.back(), '\0');
  EXPECT_EQ(log_.take(), "");
  flip(/*keep_time=*/false);
  expect_equal(*read(), *expected);
  EXPECT_THAT(log_.take(), HasSubstr("checksum"));

  scratch_.file("x.json", padded(RandomFile(2).json()));
  expect_equal(*read(), *read_dataset(json_));
}

TEST_F(AnnotationCache, RemovesUnusedCaches) {
  using std::chrono::days, std::chrono::hours;
  read_and_cache(json_);
  const auto used = cached().filename().string();
  const auto named = [](char digit, const std::string& rest = "") {
    return std::string(32, digit) + ".annotations" + rest;
  };
  const std::tuple<std::string, hours, bool> files[] = {
      {named('0'), days(100), false},
      {named('1'), days(80), true},
      {named('0', ".seen"), days(100), false},
      {named('1', ".seen"), days(80), true},
      {named('2', ".aBcDeF.part"), hours(2), false},
      {named('3', ".aBcDeF.part"), hours(0), true},
      {"my.annotations", days(1000), true},  // not a cache
      {used, days(100), true}};              // used again below
  for (const auto& [name, age, kept] : files) {
    const auto file = scratch_ / "cache" / name;
    if (name != used) std::ofstream(file) << "x";
    fs::last_write_time(file, fs::file_time_type::clock::now() - age);
  }
  read_and_cache(json_);
  read_and_cache(scratch_.file("b.json", padded(RandomFile(2).json())));
  for (const auto& [name, age, kept] : files)
    EXPECT_EQ(fs::exists(scratch_ / "cache" / name), kept) << name;
}

/// Runs in child processes; see start_process().
TEST(AnnotationCacheProcess, DISABLED_ReadsAndRemoves) {
  const fs::path json = std::getenv("MILLRACE_TEST_JSON");
  const auto expected = read_dataset(json);
  for (int i = 0; i < 30; ++i) {
    expect_equal(*read_and_cache(json), *expected);
    if (i % 3 == 2)
      for (const auto& file : files_in(std::getenv("MILLRACE_CACHE")))
        if (file.extension() != ".part") fs::remove(file);
  }
}

TEST(AnnotationCacheProcess, DISABLED_EndsAtOnce) {
  read_dataset_cached(std::getenv("MILLRACE_TEST_JSON"));
  std::exit(0);
}

/// Starts a child process that runs one of the tests above.
pid_t start_process(const std::string& test) {
  std::string self = "/proc/self/exe", filter = "--gtest_filter=AnnotationCacheProcess.*" + test,
              disabled = "--gtest_also_run_disabled_tests", quiet = "--gtest_brief=1";
  char* arguments[] = {self.data(), filter.data(), disabled.data(), quiet.data(), nullptr};
  pid_t process = -1;
  EXPECT_EQ(::posix_spawn(&process, self.c_str(), nullptr, nullptr, arguments, environ), 0);
  return process;
}

void expect_success(pid_t process) {
  int status = -1;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
}

TEST_F(AnnotationCache, IsWrittenBeforeExit) {
  const Variable file("MILLRACE_TEST_JSON", json_.string());
  expect_success(start_process("EndsAtOnce"));
  EXPECT_FALSE(cached().empty());
}

TEST_F(AnnotationCache, SurvivesConcurrentProcesses) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1, 3000).json()));
  const Variable file("MILLRACE_TEST_JSON", json.string());
  std::vector<pid_t> processes(4);
  for (auto& process : processes) process = start_process("ReadsAndRemoves");
  for (const auto process : processes) expect_success(process);
  read_and_cache(json);
  EXPECT_FALSE(cached().empty());  // one file and no partial ones
}

}  // namespace
}  // namespace millrace::coco
