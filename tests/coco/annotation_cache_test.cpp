// The cache of annotations: equal to the file, or not used.
#include "millrace/coco/data/annotation_cache.h"

#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <optional>

#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "tests/coco/datasets.h"
#include "tests/support/data.h"
#include "tests/support/log.h"
#include "tests/support/scratch.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Log;
using testing::Scratch;
using ::testing::SizeIs;

/// Sets a variable of the environment, or removes it, until the end of the test.
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

/// A data set once its cache is whole.
std::shared_ptr<const Dataset> read_and_cache(const fs::path& json) {
  auto data = read_dataset_cached(json);
  finish_caching();
  return data;
}

/// JSON that is large enough to be cached.
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
  Variable folder_{"MILLRACE_CACHE", (scratch_ / "cache").string()};
  Log log_;
};

TEST_F(AnnotationCache, IsEqualToTheFile) {
  std::vector<std::string> texts;
  for (unsigned seed = 1; seed <= 4; ++seed)
    texts.push_back(RandomFile(seed, seed == 4 ? 8000 : 400).json());
  texts.push_back(R"({"images": [], "annotations": [], "categories": []})");
  for (const auto& text : texts) {
    const auto json = scratch_.file("x.json", padded(text));
    const auto expected = read_dataset(json);
    expect_equal(*read_and_cache(json), *expected);
    EXPECT_THAT(log_.take(), AllOf(HasSubstr("info " + json.string()),
                                   HasSubstr("cached for the next start in")));
    const auto again = read_and_cache(json);
    EXPECT_EQ(log_.take(), "");
    EXPECT_EQ(again->source, json.string());
    expect_equal(*again, *expected);
  }
  EXPECT_THAT(files_in(scratch_ / "cache"), SizeIs(texts.size()));
}

TEST_F(AnnotationCache, OfRealPhotosIsEqualToTheFile) {
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

TEST_F(AnnotationCache, IsOfTheContentNotOfTheName) {
  const auto text = padded(RandomFile(1).json());
  read_and_cache(scratch_.file("a.json", text));
  log_.take();
  EXPECT_EQ(read_and_cache(scratch_.file("b.json", text))->source, (scratch_ / "b.json").string());
  EXPECT_EQ(log_.take(), "");
}

TEST_F(AnnotationCache, NoticesOtherContentOfTheSameSizeAndTime) {
  auto text = padded(RandomFile(1).json());
  const auto json = scratch_.file("x.json", text);
  read_and_cache(json);
  const auto time = fs::last_write_time(json);
  const auto area = text.find(R"("area": )") == text.npos ? text.find("\"area\":") + 7
                                                          : text.find("\"area\": ") + 8;
  text[area] = text[area] == '9' ? '8' : '9';
  scratch_.file("x.json", text);
  fs::last_write_time(json, time);
  expect_equal(*read_and_cache(json), *parse_dataset(text, "x"));
  EXPECT_THAT(files_in(scratch_ / "cache"), SizeIs(2));
}

TEST_F(AnnotationCache, IsMadeAnewWhereItIsDamaged) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1, 60).json()));
  const auto expected = read_dataset(json);
  read_and_cache(json);
  const auto file = cached();
  const auto whole = read_file(file);
  const auto expect_made_anew = [&](const std::string& damaged, const std::string& why = "") {
    scratch_.file("damaged", damaged);
    // As a cache is written: readers may have the old one mapped
    fs::rename(scratch_ / "damaged", file);
    log_.take();
    expect_equal(*read_and_cache(json), *expected);
    const auto told = log_.take();
    EXPECT_THAT(told, AllOf(HasSubstr("warning the cached annotations " + file.string() +
                                      " cannot be used and are made anew: "),
                            HasSubstr(why)));
    // The second says where the new one is
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 2) << told;
    EXPECT_TRUE(read_file(file) == whole);
  };

  for (std::size_t byte = 0; byte < std::min<std::size_t>(192, whole.size());
       ++byte) {  // the header, and more
    auto damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << byte % 8));
    expect_made_anew(damaged);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{200},
                                 whole.size() / 2, whole.size() - 1})
    expect_made_anew(whole.substr(0, size));
  expect_made_anew(whole.substr(0, 20), "it is truncated");
  expect_made_anew(whole + '\0', "it has a wrong length");
  expect_made_anew("hello", "it is truncated");
  expect_made_anew(std::string(whole.size(), 'x'), "it is no cache of annotations");
  const auto with = [&](std::size_t byte) {
    auto damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] + 1);
    return damaged;
  };
  expect_made_anew(with(8), "of another byte order");
  expect_made_anew(with(12), "of another version");
  expect_made_anew(with(whole.size() - 1), "its checksum is wrong");

  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    auto damaged = whole;
    for (unsigned flips = 1 + random() % 3; flips > 0; --flips) {
      const auto byte = random() % damaged.size();
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << random() % 8));
    }
    if (damaged != whole) expect_made_anew(damaged);
  }
}

TEST_F(AnnotationCache, OfOtherContentIsNotUsedUnderThisName) {
  const auto other = scratch_.file("other.json", padded(RandomFile(2).json()));
  read_and_cache(other);
  const auto foreign = read_file(cached());
  fs::remove_all(scratch_ / "cache");
  const auto json = scratch_.file("x.json", padded(RandomFile(1).json()));
  read_and_cache(json);
  scratch_.file("foreign", foreign);
  fs::rename(scratch_ / "foreign", cached());
  log_.take();
  expect_equal(*read_and_cache(json), *read_dataset(json));
  EXPECT_THAT(log_.take(), HasSubstr("it is of other content"));
}

TEST_F(AnnotationCache, OfAFileWithFaultsIsNotMade) {
  const auto json =
      scratch_.file("x.json", padded(R"({"images": [], "annotations": [7], "categories": []})"));
  for (int i = 0; i < 2; ++i)
    MILLRACE_EXPECT_ERROR(read_and_cache(json), json, "annotations[0] is not an object");
  EXPECT_THAT(files_in(scratch_ / "cache"), IsEmpty());
  MILLRACE_EXPECT_ERROR(read_and_cache(scratch_ / "none.json"), scratch_ / "none.json",
                        "cannot be opened");
}

TEST_F(AnnotationCache, OfASmallFileIsNotMade) {
  const auto json = scratch_.file("x.json", RandomFile(1).json());
  expect_equal(*read_and_cache(json), *read_dataset(json));
  EXPECT_FALSE(fs::exists(scratch_ / "cache"));
}

TEST_F(AnnotationCache, LiesInTheFolderOfTheUser) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1).json()));
  const Variable unnamed("MILLRACE_CACHE", {});
  const Variable home("HOME", (scratch_ / "home").string());
  {
    const Variable caches("XDG_CACHE_HOME", (scratch_ / "xdg").string());
    read_and_cache(json);
    EXPECT_THAT(files_in(scratch_ / "xdg" / "millrace"), SizeIs(1));
  }
  const Variable none("XDG_CACHE_HOME", {});
  read_and_cache(json);
  EXPECT_THAT(files_in(scratch_ / "home" / ".cache" / "millrace"), SizeIs(1));
  const Variable off("MILLRACE_CACHE", "off");
  fs::remove_all(scratch_ / "home");
  read_and_cache(json);
  EXPECT_FALSE(fs::exists(scratch_ / "home"));
}

TEST_F(AnnotationCache, WarnsOnceWhereTheFolderCannotBeWritten) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1).json()));
  const Variable unnamed("MILLRACE_CACHE", {});
  const Variable caches("XDG_CACHE_HOME", json.string());  // a file is no folder, not even for root
  expect_equal(*read_and_cache(json), *read_dataset(json));
  EXPECT_THAT(
      log_.take(),
      AllOf(HasSubstr("warning annotations cannot be cached, so that each start reads them anew: " +
                      json.string() + "/millrace"),
            HasSubstr("MILLRACE_CACHE names another folder")));
  expect_equal(*read_and_cache(json), *read_dataset(json));
  EXPECT_EQ(log_.take(), "");
}

TEST_F(AnnotationCache, RefusesAFolderOfTheUsersThatCannotBeWritten) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1).json()));
  const Variable named("MILLRACE_CACHE", json.string() + "/cache");
  EXPECT_THAT([&] { read_and_cache(json); },
              ::testing::ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("MILLRACE_CACHE: " + json.string() + "/cache"),
                        HasSubstr("or set it to 'off'"))));
}

TEST_F(AnnotationCache, IsWrittenWhileTheDataSetIsUsed) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1).json()));
  auto data = read_dataset_cached(json);
  const auto again = read_dataset_cached(json);  // from the cache or from the file
  expect_equal(*again, *data);
  data.reset();
  finish_caching();
  expect_equal(*read_dataset_cached(json), *again);
  EXPECT_THAT(files_in(scratch_ / "cache"), SizeIs(1));
}

TEST_F(AnnotationCache, WhatNobodyUsesIsRemoved) {
  const auto used = scratch_.file("a.json", padded(RandomFile(1).json())),
             other = scratch_.file("b.json", padded(RandomFile(2).json()));
  read_and_cache(used);
  const auto kept = cached();
  const auto named = [](char digit, const std::string& rest) {
    return std::string(32, digit) + ".annotations" + rest;
  };
  const auto aged = [&](const std::string& name, std::chrono::hours age) {
    const auto file = scratch_ / "cache" / name;
    if (!fs::exists(file)) std::ofstream(file) << "x";
    fs::last_write_time(file, fs::file_time_type::clock::now() - age);
  };
  using std::chrono::days, std::chrono::hours;
  aged(named('0', ""), days(100));
  aged(named('1', ""), days(80));
  aged(named('2', ".aBcDeF.part"), hours(2));
  aged(named('3', ".aBcDeF.part"), hours(0));
  aged("my.annotations", days(1000));  // not ours
  aged(kept.filename().string(), days(100));
  read_and_cache(used);  // so that it is used again
  read_and_cache(other);
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_FALSE(fs::exists(scratch_ / "cache" / named('0', "")));
  EXPECT_TRUE(fs::exists(scratch_ / "cache" / named('1', "")));
  EXPECT_FALSE(fs::exists(scratch_ / "cache" / named('2', ".aBcDeF.part")));
  EXPECT_TRUE(fs::exists(scratch_ / "cache" / named('3', ".aBcDeF.part")));
  EXPECT_TRUE(fs::exists(scratch_ / "cache" / "my.annotations"));
}

/// Runs in processes of its own, see below.
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

/// Starts a process with one of the tests above.
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

TEST_F(AnnotationCache, IsWrittenBeforeTheProgramEnds) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1).json()));
  const Variable file("MILLRACE_TEST_JSON", json.string());
  expect_success(start_process("EndsAtOnce"));
  EXPECT_FALSE(cached().empty());
}

TEST_F(AnnotationCache, IsSharedByProcessesThatRace) {
  const auto json = scratch_.file("x.json", padded(RandomFile(1, 3000).json()));
  const Variable file("MILLRACE_TEST_JSON", json.string());
  std::vector<pid_t> processes(4);
  for (auto& process : processes) process = start_process("ReadsAndRemoves");
  for (const auto process : processes) expect_success(process);
  read_and_cache(json);
  EXPECT_FALSE(cached().empty());  // one file, and nothing half-written beside it
}

}  // namespace
}  // namespace millrace::coco
