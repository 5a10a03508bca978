// The stage 'cache', in memory and on disk: it changes no byte, spares the stages in front, and
// never gives what is out of date.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/data.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TinyCoco;

std::atomic<int> made = 0;  // samples that came through the stage 'count'

/// Stands in for work that a cache spares; its option makes another pipeline of it.
struct Count {
  static constexpr std::string_view kName = "count";
  std::int64_t shade = 0;

  Sample operator()(Sample sample) const {
    ++made;
    sample.image.pixels() += cv::Scalar::all(static_cast<double>(shade));
    return sample;
  }
  void describe(Options& o) { o.add("shade", shade, "added to each pixel"); }
};
MILLRACE_REGISTER(register_stage<Count>("counts"));

/// The default pipeline with `cache` (a table's text, or nothing) after decode and `count`.
std::vector<Config> stages(const std::string& cache,
                           const std::string& count = "{ type = 'count' }") {
  const auto config = parse_config("stages = [ { type = 'read' }, { type = 'decode' }, " + count +
                                       ", " + (cache.empty() ? "" : cache + ", ") +
                                       "{ type = 'flip' }, { type = 'resize_shortest_edge' }, "
                                       "{ type = 'group_by_aspect_ratio' }, { type = 'pad' } ]",
                                   "test.toml");
  return std::get<Config::Array>(config.find("stages")->data);
}

std::string on_disk(const fs::path& folder, int max_mb = 64) {
  return "{ type = 'cache', where = 'disk', folder = '" + folder.string() +
         "', max_mb = " + std::to_string(max_mb) + " }";
}
const std::string in_memory = "{ type = 'cache' }";

/// The digests of the first batches; `made` then counts what they took.
std::vector<std::uint64_t> digests(const DataOptions& data, const std::vector<Config>& pipeline,
                                   int count = 30) {
  made = 0;
  const auto flow = start_train_flow(data, pipeline, open_split(data, data.train), 1);
  std::vector<std::uint64_t> result;
  for (; count > 0; --count) result.push_back(digest(flow->next()->value));
  return result;
}

/// A data set of 12 usable images and a folder for the cache. One thread, and few images in flight:
/// none comes again before it is kept.
struct Scene {
  TinyCoco files{13};
  DataOptions data = files.options();
  fs::path folder = fs::path(data.root) / "cache";
  std::vector<std::uint64_t> expected;
  Scene() {
    data.threads = 1;
    data.in_flight = 6;
    expected = digests(data, stages(""));
    EXPECT_GT(made, 60);
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".mdb") return entry.path();
    return {};
  }
};

TEST(CacheStage, InMemoryMakesEachImageOnceAndChangesNothing) {
  Scene scene;
  EXPECT_EQ(digests(scene.data, stages(in_memory)), scene.expected);
  EXPECT_EQ(made, 12);
  for (const int threads : {2, 8}) {
    scene.data.threads = threads;
    EXPECT_EQ(digests(scene.data, stages(in_memory)), scene.expected) << threads;
  }
}

TEST(CacheStage, OnDiskMakesEachImageOnceForAllRuns) {
  Scene scene;
  EXPECT_EQ(digests(scene.data, stages(on_disk(scene.folder))), scene.expected);
  EXPECT_EQ(made, 12);
  for (const int threads : {1, 8}) {
    scene.data.threads = threads;
    scene.data.batch_size = 3;
    EXPECT_EQ(digests(scene.data, stages(on_disk(scene.folder))), scene.expected);
    EXPECT_EQ(made, 0) << threads;
  }
}

TEST(CacheStage, KnowsAnOptionWhetherItIsWrittenOutOrLeftToItsDefault) {
  Scene scene;
  EXPECT_EQ(digests(scene.data, stages(on_disk(scene.folder))), scene.expected);
  EXPECT_EQ(made, 12);
  const auto written = stages(on_disk(scene.folder), "{ type = 'count', shade = 0 }");
  EXPECT_EQ(digests(scene.data, written), scene.expected);
  EXPECT_EQ(made, 0);
}

TEST(CacheStage, ChangesNoByteOfRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const TinyCoco scratch(1);
  DataOptions data;
  data.root = testing::data_folder() / "coco_mini";
  data.short_side = {200, 320};
  data.max_side = 533;
  data.threads = 2;
  const auto expected = digests(data, stages(""), 60);
  EXPECT_EQ(digests(data, stages(in_memory), 60), expected);
  const auto disk = on_disk(fs::path(scratch.options().root) / "cache", 1000);
  EXPECT_EQ(digests(data, stages(disk), 60), expected);
  EXPECT_EQ(digests(data, stages(disk), 60), expected);
  EXPECT_EQ(made, 0);
}

TEST(CacheStage, MayStandBehindAResizeThatDrawsNothing) {
  const TinyCoco files(9);
  auto data = files.options();
  data.max_side = 40;
  const auto pipeline = [&](const std::string& cache) {
    const auto config = parse_config(
        "stages = [ { type = 'read' }, { type = 'decode', short_side = 20 }, "
        "{ type = 'resize_shortest_edge' }, " +
            cache + "{ type = 'flip' }, { type = 'group_by_aspect_ratio' }, { type = 'pad' } ]",
        "test.toml");
    return std::get<Config::Array>(config.find("stages")->data);
  };
  data.short_side = {20, 24};
  EXPECT_THROW(digests(data, pipeline(in_memory + ", ")), ConfigError);
  data.short_side = {20};
  // Pixels at another size than the image's are held here
  const auto expected = digests(data, pipeline(""));
  EXPECT_EQ(digests(data, pipeline(in_memory + ", ")), expected);
  const auto disk = on_disk(fs::path(data.root) / "cache") + ", ";
  EXPECT_EQ(digests(data, pipeline(disk)), expected);
  EXPECT_EQ(digests(data, pipeline(disk)), expected);
}

TEST(CacheStage, IsSharedByFlowsOfOneProcess) {
  const Scene scene;
  const auto pipeline = stages(on_disk(scene.folder));
  const auto split = open_split(scene.data, scene.data.train);
  const auto one = start_train_flow(scene.data, pipeline, split, 1);
  const auto other = start_train_flow(scene.data, pipeline, split, 1);
  for (const auto expected : scene.expected) {
    EXPECT_EQ(digest(one->next()->value), expected);
    EXPECT_EQ(digest(other->next()->value), expected);
  }
}

TEST(CacheStage, IsSharedByProcesses) {
  const Scene scene;
  std::vector<pid_t> runs;
  for (int i = 0; i < 3; ++i) {
    runs.push_back(fork());
    if (runs.back() == 0)
      _exit(execl("/proc/self/exe", "cache_test", "--gtest_also_run_disabled_tests",
                  "--gtest_filter=CacheStage.DISABLED_OneOfSeveralProcesses",
                  ("--root=" + scene.data.root).c_str(), nullptr));
  }
  for (const auto run : runs) {
    int status = 0;
    waitpid(run, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(digests(scene.data, stages(on_disk(scene.folder))), scene.expected);
  EXPECT_EQ(made, 0);
}

/// What each process of IsSharedByProcesses does.
TEST(CacheStage, DISABLED_OneOfSeveralProcesses) {
  std::string root;
  for (const auto& argument : ::testing::internal::GetArgvs())
    if (argument.starts_with("--root=")) root = argument.substr(7);
  if (root.empty()) GTEST_SKIP() << "belongs to IsSharedByProcesses";
  const TinyCoco any(1);
  auto data = any.options();
  data.root = root;
  data.threads = 1;
  EXPECT_EQ(digests(data, stages(on_disk(fs::path(root) / "cache"))), digests(data, stages("")));
}

TEST(CacheStage, NoticesAnotherPipeline) {
  const Scene scene;
  const auto disk = on_disk(scene.folder);
  digests(scene.data, stages(disk));
  const std::string darker = "{ type = 'count', shade = 9 }";
  const auto expected = digests(scene.data, stages("", darker));
  EXPECT_NE(expected, scene.expected);
  EXPECT_EQ(digests(scene.data, stages(disk, darker)), expected);
  EXPECT_EQ(made, 12);
}

TEST(CacheStage, OutlivesEveryOptionThatNoStageInFrontFollows) {
  const Scene scene;
  const auto disk = on_disk(scene.folder);
  digests(scene.data, stages(disk));
  auto data = scene.data;
  data.source_timeout = {7};
  data.flip = 1;
  data.short_side = {24};
  data.divisor = 8;
  data.batch_size = 2;
  data.max_skipped = 0.5;
  const auto expected = digests(data, stages(""));
  EXPECT_EQ(digests(data, stages(disk)), expected);
  EXPECT_EQ(made, 0);
}

TEST(CacheStage, NoticesAnotherFileUnderTheSameName) {
  const Scene scene;
  const auto disk = on_disk(scene.folder);
  digests(scene.data, stages(disk));
  auto picture = cv::imread(scene.files.image(3).string());
  picture = cv::Scalar(1, 2, 3);
  cv::imwrite(scene.files.image(3).string(), picture);
  const auto expected = digests(scene.data, stages(""));
  EXPECT_NE(expected, scene.expected);
  EXPECT_EQ(digests(scene.data, stages(disk)), expected);
  EXPECT_EQ(made, 1);
}

TEST(CacheStage, NoticesOtherAnnotations) {
  const Scene scene;
  const auto disk = on_disk(scene.folder);
  digests(scene.data, stages(disk));
  const auto json = fs::path(scene.data.root) / "annotations/instances_train2017.json";
  auto text = read_file(json);
  text.replace(text.find("\"bbox\":[5"), 9, "\"bbox\":[6");
  std::ofstream(json) << text;
  const auto expected = digests(scene.data, stages(""));
  EXPECT_NE(expected, scene.expected);
  EXPECT_EQ(digests(scene.data, stages(disk)), expected);
  EXPECT_EQ(made, 1);
}

TEST(CacheStage, KeepsWhatFitsAndMakesTheRest) {
  const TinyCoco files(400);  // some 8 kB of pixels each
  auto data = files.options();
  data.threads = 1;
  data.in_flight = 6;
  const auto batches = 400;  // three epochs
  const auto expected = digests(data, stages(""), batches);
  const auto disk = on_disk(fs::path(data.root) / "cache", 1);
  for (const auto& cache : {"{ type = 'cache', max_mb = 1 }", disk.c_str(), disk.c_str()}) {
    EXPECT_EQ(digests(data, stages(cache), batches), expected);
    EXPECT_GT(made, 399) << "not all fit";
    EXPECT_LT(made, 1100) << "but some do";
  }
}

TEST(CacheStage, NeverTrustsADamagedFile) {
  const Scene scene;
  const auto disk = on_disk(scene.folder);
  digests(scene.data, stages(disk));
  const auto whole = read_file(scene.file());
  // In a value: it is made again, and kept again.
  const auto at = whole.find("pixels", whole.size() / 2);
  ASSERT_NE(at, std::string::npos);
  auto damaged = whole;
  damaged[at + 200] ^= 1;
  std::ofstream(scene.file(), std::ios::binary) << damaged;
  EXPECT_EQ(digests(scene.data, stages(disk)), scene.expected);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(digests(scene.data, stages(disk)), scene.expected);
  EXPECT_EQ(made, 0);
  for (const std::size_t length : {whole.size() / 2, std::size_t{100}}) {
    fs::resize_file(scene.file(), length);
    EXPECT_EQ(digests(scene.data, stages(disk)), scene.expected);
    EXPECT_EQ(made, 12) << "all anew";
  }
  std::ofstream(scene.file(), std::ios::binary) << std::string(10'000, 'x');
  EXPECT_EQ(digests(scene.data, stages(disk)), scene.expected);
}

TEST(CacheStage, SaysWhatCannotWork) {
  const Scene scene;
  const auto complaint = [&](const std::string& cache) -> std::string {
    return testing::message_of<ConfigError>([&] { digests(scene.data, stages(cache), 1); });
  };
  EXPECT_THAT(complaint("{ type = 'cache', where = 'disk' }"),
              AllOf(HasSubstr("test.toml:1:"), HasSubstr("folder is needed by a cache on disk")));
  EXPECT_THAT(complaint("{ type = 'cache', where = 'tape' }"), HasSubstr("where"));
  EXPECT_THAT(complaint(on_disk(scene.files.image(0))),
              AllOf(HasSubstr("test.toml:1:"), HasSubstr(scene.files.image(0).string())));
  EXPECT_THAT(complaint(on_disk("/proc/cache")),
              HasSubstr("/proc/cache: this folder cannot be made"));
  const auto config = parse_config(
      "stages = [ { type = 'read' }, { type = 'decode' }, { type = 'flip' }, { type = 'cache' } ]",
      "test.toml");
  EXPECT_THAT(
      [&] {
        start_train_flow(scene.data, std::get<Config::Array>(config.find("stages")->data),
                         open_split(scene.data, scene.data.train), 1);
      },
      ::testing::ThrowsMessage<ConfigError>(HasSubstr("what 'flip' has drawn at random")));
}

}  // namespace
}  // namespace millrace
