// The stage 'cache' changes no byte, saves the work of the stages before it, and is never out of
// date.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/log.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

namespace fs = std::filesystem;

std::atomic<int> made = 0;  // samples that passed the stage 'count'

/// Stands for the work that a cache saves. A different option value makes a different pipeline.
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

/// Returns the default stages with `cache` after 'decode' and 'count'.
std::vector<Config> cached(const std::string& cache,
                           const std::string& count = "{ type = 'count' }, ") {
  return pipeline(count + cache + kFlipAndResize);
}

std::string on_disk(const fs::path& folder, int max_mb = 64) {
  return "{ type = 'cache', where = 'disk', folder = '" + folder.string() +
         "', max_mb = " + std::to_string(max_mb) + " }, ";
}
const std::string in_memory = "{ type = 'cache' }, ";

/// Returns the digests of the first batches; `made` is then the number of samples that were
/// processed for them.
std::vector<std::uint64_t> digests_counting_made(const DataOptions& data,
                                                 const std::vector<Config>& stages,
                                                 int count = 30) {
  made = 0;
  return digests(*train_flow(data, stages), count);
}

/// A data set of 12 usable images and a folder for the cache. Few samples are in flight, so that no
/// image is needed again before it is cached.
struct Scene {
  TinyCoco files{13};
  DataOptions data = files;
  fs::path folder = fs::path(data.root) / "cache";
  std::string disk = on_disk(folder);
  std::vector<std::uint64_t> expected;
  Scene() {
    data.threads = 1;
    data.in_flight = 6;
    expected = digests_counting_made(data, cached(""));
    EXPECT_GT(made, 60);
  }
  /// Expects changed data or stages to produce different bytes, and `images` images to be processed
  /// instead of read from the cache.
  void expect_made(int images, const DataOptions& changed,
                   const std::string& count = "{ type = 'count' }, ") const {
    const auto own = digests_counting_made(changed, cached("", count));
    EXPECT_NE(own, expected);
    EXPECT_EQ(digests_counting_made(changed, cached(disk, count)), own);
    EXPECT_EQ(made, images);
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".mdb") return entry.path();
    return {};
  }
};

TEST(CacheStage, ProcessesEachImageOnceInMemory) {
  Scene scene;
  EXPECT_EQ(digests_counting_made(scene.data, cached(in_memory)), scene.expected);
  EXPECT_EQ(made, 12);
  for (const int threads : {2, 8}) {
    scene.data.threads = threads;
    EXPECT_EQ(digests_counting_made(scene.data, cached(in_memory)), scene.expected) << threads;
  }
}

TEST(CacheStage, ProcessesEachImageOnceOnDisk) {
  Scene scene;
  EXPECT_EQ(digests_counting_made(scene.data, cached(scene.disk)), scene.expected);
  EXPECT_EQ(made, 12);
  for (const int threads : {1, 8}) {
    scene.data.threads = threads;
    EXPECT_EQ(digests_counting_made(scene.data, cached(scene.disk)), scene.expected);
    EXPECT_EQ(made, 0) << threads;
  }
  const auto written = cached(scene.disk, "{ type = 'count', shade = 0 }, ");
  EXPECT_EQ(digests_counting_made(scene.data, written), scene.expected);
  EXPECT_EQ(made, 0) << "an explicit default value is the same option";
}

TEST(CacheStage, KeepsBytesOfRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const Scratch scratch;
  const auto data = coco_mini();
  const auto expected = digests_counting_made(data, cached(""), 60);
  EXPECT_EQ(digests_counting_made(data, cached(in_memory), 60), expected);
  const auto disk = on_disk(scratch.path(), 1000);
  EXPECT_EQ(digests_counting_made(data, cached(disk), 60), expected);
  EXPECT_EQ(digests_counting_made(data, cached(disk), 60), expected);
  EXPECT_EQ(made, 0);
}

TEST(CacheStage, AcceptsResizeWithoutRandomDraws) {
  TinyCoco data(9);
  data.max_side = 40;
  const auto stages = [](const std::string& cache) {
    return tables_of(
        "stages = [ { type = 'read' }, { type = 'decode', short_side = 20 }, "
        "{ type = 'resize_shortest_edge' }, " +
        cache + "{ type = 'flip' }, { type = 'group_by_aspect_ratio' }, { type = 'pad' } ]");
  };
  data.short_side = {20, 24};
  EXPECT_THROW(digests_counting_made(data, stages(in_memory)), ConfigError);
  data.short_side = {20};
  // The size of the cached pixels differs from the image's width and height.
  const auto expected = digests_counting_made(data, stages(""));
  const auto disk = on_disk(fs::path(data.root) / "cache");
  for (const auto& cache : {in_memory, disk, disk})
    EXPECT_EQ(digests_counting_made(data, stages(cache)), expected);
}

TEST(CacheStage, SharesFileBetweenFlows) {
  const Scene scene;
  const auto stages = cached(scene.disk);
  const auto one = train_flow(scene.data, stages);
  const auto other = train_flow(scene.data, stages);
  for (const auto expected : scene.expected) {
    EXPECT_EQ(digest(one->next()->value), expected);
    EXPECT_EQ(digest(other->next()->value), expected);
  }
}

TEST(CacheStage, SharesFileBetweenProcesses) {
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
  EXPECT_EQ(digests_counting_made(scene.data, cached(scene.disk)), scene.expected);
  EXPECT_EQ(made, 0);
}

/// The test that each process of SharesFileBetweenProcesses runs.
TEST(CacheStage, DISABLED_OneOfSeveralProcesses) {
  std::string root;
  for (const auto& argument : ::testing::internal::GetArgvs())
    if (argument.starts_with("--root=")) root = argument.substr(7);
  if (root.empty()) GTEST_SKIP() << "run by SharesFileBetweenProcesses";
  TinyCoco data(1);
  data.root = root;
  data.threads = 1;
  EXPECT_EQ(digests_counting_made(data, cached(on_disk(fs::path(root) / "cache"))),
            digests_counting_made(data, cached("")));
}

TEST(CacheStage, StaysValidForUnrelatedOptions) {
  const Scene scene;
  digests_counting_made(scene.data, cached(scene.disk));
  auto data = scene.data;
  data.source_timeout = {7};
  data.flip = 1;
  data.short_side = {24};
  data.divisor = 8;
  data.batch_size = 2;
  data.max_skipped = 0.5;
  scene.expect_made(0, data);
}

TEST(CacheStage, DetectsChangedStagesFilesAndAnnotations) {
  const Scene scene;
  digests_counting_made(scene.data, cached(scene.disk));
  scene.expect_made(12, scene.data, "{ type = 'count', shade = 9 }, ");

  auto picture = picture_in(scene.files.image(3));
  picture = cv::Scalar(1, 2, 3);
  save_picture(scene.files.image(3), picture);
  scene.expect_made(1, scene.data);

  const auto json = fs::path(scene.data.root) / "annotations/instances_train2017.json";
  auto text = read_file(json);
  text.replace(text.find("\"bbox\":[5"), 9, "\"bbox\":[6");
  std::ofstream(json) << text;
  scene.expect_made(1, scene.data);
}

TEST(CacheStage, KeepsOnlyImagesThatFit) {
  const TinyCoco files(400);  // about 8 kB of pixels each
  DataOptions data = files;
  data.threads = 1;
  data.in_flight = 6;
  const auto batches = 400;  // three epochs
  const auto expected = digests_counting_made(data, cached(""), batches);
  const auto disk = on_disk(fs::path(data.root) / "cache", 1);
  for (const auto& cache : {std::string("{ type = 'cache', max_mb = 1 }, "), disk, disk}) {
    EXPECT_EQ(digests_counting_made(data, cached(cache), batches), expected);
    EXPECT_GT(made, 399) << "not all fit";
    EXPECT_LT(made, 1100) << "but some do";
  }
}

TEST(CacheStage, DetectsDamagedFile) {
  const Scene scene;
  const auto run = [&] { return digests_counting_made(scene.data, cached(scene.disk)); };
  run();
  const auto whole = read_file(scene.file());
  // A flipped bit in a value: the image is processed and cached again.
  const auto at = whole.find("pixels", whole.size() / 2);
  ASSERT_NE(at, std::string::npos);
  auto damaged = whole;
  damaged[at + 200] ^= 1;
  std::ofstream(scene.file(), std::ios::binary) << damaged;
  EXPECT_EQ(run(), scene.expected);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(run(), scene.expected);
  EXPECT_EQ(made, 0);
  for (const std::size_t length : {whole.size() / 2, std::size_t{100}}) {
    fs::resize_file(scene.file(), length);
    EXPECT_EQ(run(), scene.expected);
    EXPECT_EQ(made, 12) << "all images must be processed again";
  }
  std::ofstream(scene.file(), std::ios::binary) << std::string(10'000, 'x');
  EXPECT_EQ(run(), scene.expected);
}

TEST(CacheStage, ContinuesIfFolderIsUnwritable) {
  const Scene scene;
  for (const fs::path& folder : {scene.files.image(0), fs::path("/proc/cache")}) {
    Log log;
    EXPECT_EQ(digests_counting_made(scene.data, cached(on_disk(folder))), scene.expected);
    EXPECT_GT(made, 60);
    const auto text = log.take();
    EXPECT_THAT(text, AllOf(HasSubstr("test.toml:1:"), HasSubstr(folder.string())));
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  }
}

/// Limits the size of files during its lifetime, to imitate a full disk.
class ShortFiles {
 public:
  explicit ShortFiles(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ShortFiles(const ShortFiles&) = delete;
  ~ShortFiles() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(CacheStage, ContinuesIfDiskIsFull) {
  std::signal(SIGXFSZ, SIG_IGN);
  const Scene scene;
  const auto disk = on_disk(scene.folder, 1);  // 1 MB, written a sixteenth at a time
  Log log;
  {
    const ShortFiles full(80'000);  // more than the size of the lock file
    EXPECT_EQ(digests_counting_made(scene.data, cached(disk)), scene.expected);
  }
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr(scene.folder.string()));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_EQ(digests_counting_made(scene.data, cached(disk)), scene.expected);
  EXPECT_EQ(digests_counting_made(scene.data, cached(disk)), scene.expected);
  EXPECT_LT(made, 12) << "there is room again";
}

TEST(CacheStage, RejectsInvalidOptions) {
  const Scene scene;
  const auto complaint = [&](const std::string& cache) {
    return message_of<ConfigError>([&] { digests_counting_made(scene.data, cached(cache), 1); });
  };
  EXPECT_THAT(complaint("{ type = 'cache', where = 'disk' }, "),
              AllOf(HasSubstr("test.toml:1:"), HasSubstr("folder is required")));
  EXPECT_THAT(complaint("{ type = 'cache', where = 'tape' }, "), HasSubstr("where"));
  EXPECT_THAT(complaint("{ type = 'flip' }, " + in_memory), HasSubstr("random draws of 'flip'"));
}

}  // namespace
}  // namespace millrace
