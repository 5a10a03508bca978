// Resources that a flow uses over time: memory, threads and open files, also after an early stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "millrace/dataflow/image/image_file.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/data.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

namespace fs = std::filesystem;

std::ptrdiff_t entries(const fs::path& folder) {
  const fs::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

/// Returns the resident memory of this process in bytes.
std::int64_t resident() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0;
  file >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST(Endurance, KeepsMemoryConstant) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  const TinyCoco options(40);
  const auto flow = train_flow(options);
  const auto take = [&](int images) {
    for (int i = 0; i < images; i += static_cast<int>(options.batch_size)) flow->next();
    return resident();
  };
  take(5'000);  // until pools and heaps have grown to their final size
  const auto early = take(1'000);
  const auto late = take(20'000);
  EXPECT_LT(late - early, 2 << 20) << "bytes over 20,000 images of about 9,000 bytes each";
}

TEST(Endurance, LeavesNoThreadOrOpenFile) {
  TinyCoco options(20);
  options.threads = 4;
  { train_flow(options)->next(); }
  const auto files = entries("/proc/self/fd");
  Rng rng{1};
  for (int i = 0; i < 200; ++i) {
    const auto flow = train_flow(options, {}, rng());
    for (auto taken = rng.below(4); taken > 0; --taken) flow->next();
    usleep(static_cast<useconds_t>(rng.below(500)));
  }
  EXPECT_EQ(entries("/proc/self/fd"), files);
  EXPECT_LE(entries("/proc/self/task"), 9 + kSanitizerThreads);
}

/// Runs a flow of `groups` groups of `size` samples with the four smallest valid limits on samples
/// in flight. Expects smaller limits to be rejected.
void expect_every_legal_bound(std::size_t groups, std::size_t size, int threads) {
  const auto number = [](std::int64_t n, Rng& rng) {
    usleep(static_cast<useconds_t>(rng.below(30)));
    return n;
  };
  const auto start = [&](std::int64_t bound) {
    return from(std::vector<std::int64_t>(60))
        .map("number", number)
        .group_by([groups](std::int64_t) { return groups - 1; }, groups, size)
        .start({.epochs = 3, .threads = threads, .in_flight = bound});
  };
  const auto least = static_cast<std::int64_t>(size);
  for (std::int64_t bound = 1; bound < least; ++bound) EXPECT_THROW(start(bound), ConfigError);
  for (std::int64_t bound = least; bound < least + 4; ++bound) {
    std::size_t samples = 0;
    for (const auto& group : drain(*start(bound))) samples += group.size();
    EXPECT_EQ(samples, 180U) << groups << " groups of " << size << " by " << threads
                             << " threads, in_flight = " << bound;
  }
}

TEST(BackPressure, AcceptsExactlyValidLimits) {
  for (const std::size_t groups : {1, 2, 3})
    for (const std::size_t size : {1, 2, 5})
      for (const int threads : {1, 2, 8}) expect_every_legal_bound(groups, size, threads);
}

/// Writes a COCO data set of all unusual and broken files, each annotated with the size that Pillow
/// reads.
void annotate_odd_files(const fs::path& folder) {
  const auto files = data_folder() / "jpeg";
  const auto manifest = nlohmann::json::parse(read_file(files / "manifest.json"));
  nlohmann::json images = nlohmann::json::array();
  for (const auto& entry : manifest["files"]) {
    const auto& pillow = entry["pillow_truncated_ok"];
    const bool known = pillow["ok"];
    images.push_back({{"id", images.size() + 1},
                      {"file_name", entry["file"]},
                      {"width", known ? int(pillow["size"][0]) : 64},
                      {"height", known ? int(pillow["size"][1]) : 48}});
  }
  fs::create_directories(folder / "annotations");
  fs::create_directory_symlink(fs::absolute(files), folder / "odd");
  std::ofstream(folder / "annotations/instances_odd.json")
      << nlohmann::json{{"images", images},
                        {"annotations", nlohmann::json::array()},
                        {"categories", {{{"id", 1}, {"name", "thing"}}}}};
}

TEST(OddFiles, AreUsedOrCountedForAnyThreadCount) {
  MILLRACE_NEEDS_DATA("jpeg");
  const Scratch folder;
  annotate_odd_files(folder.path());
  DataOptions options;
  options.root = folder.path().string();
  options.val = "odd";
  options.max_skipped = 1;
  options.short_side = {64};
  options.max_side = 100;
  const auto split = open_split(options, "odd");
  const auto run = [&](std::int64_t threads) {
    options.threads = threads;
    const auto flow = start_eval_flow(options, split);
    std::vector<std::uint64_t> digests;
    for (const auto& batch : drain(*flow)) digests.push_back(digest(batch));
    const auto skipped = static_cast<std::size_t>(flow->report().skipped);
    EXPECT_EQ(digests.size() + skipped, split.annotations->images.size());
    EXPECT_GE(digests.size(), 30U);
    for (const auto& reason : flow->report().skipped_reasons)
      EXPECT_THAT(reason, HasSubstr("stage 'decode'"));
    return digests;
  };
  const auto expected = run(1);
  EXPECT_EQ(run(2), expected);
  EXPECT_EQ(run(8), expected);

  options.on_error = OnError::fail;
  EXPECT_THROW(drain(*start_eval_flow(options, split)), DataError);
}

}  // namespace
}  // namespace millrace
