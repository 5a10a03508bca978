// Files that callbacks append to contain each line once, even if the run is killed at any time and
// resumed. Tested with the callback of examples/my_callback.
#include "millrace/trainer/appended_file.h"

#include <gmock/gmock.h>

#include "tests/callbacks/series.h"
#include "tests/callbacks/training.h"

namespace millrace::testing {
namespace {

/// Returns a training run that announces improvements of a score, which improves in most steps.
Training announcing(const std::filesystem::path& folder) {
  Training training{.folder = folder};
  training.declared = {{"rising", "type = 'series'\nvalues = [1, 3, 2, 4, 5, 6, 6, 7, 8, 9]"},
                       {"announce_best", "metric = 'score'"},
                       {"checkpoint", "every = '4 steps'"}};
  return training;
}

TEST(AppendedFile, IsTruncatedAndExtended) {
  const Scratch scratch;
  const auto file = scratch.file("m", "{\"step\":1}\n{\"step\":2}\n{\"step\":1,\"lo");
  cut_file(file, 100);
  cut_file(file, 22);
  EXPECT_EQ(read_file(file), "{\"step\":1}\n{\"step\":2}\n");
  append_to(file, "{}\n");
  EXPECT_EQ(read_file(file), "{\"step\":1}\n{\"step\":2}\n{}\n");
  cut_file(scratch / "missing", 0);
  EXPECT_FALSE(std::filesystem::exists(scratch / "missing"));
  EXPECT_THROW(append_to(scratch / "no" / "folder" / "m", "{}"), Error);
}

TEST(AppendedFile, ContainsEachLineOnceAfterKill) {
  const Scratch scratch;
  ASSERT_EQ(announcing(scratch / "whole").in_child(), 0);
  const auto whole = read_file(scratch / "whole" / "best.txt");
  EXPECT_THAT(whole, ::testing::StartsWith("step 1: score 1\nstep 2: score 3\nstep 4: score 4\n"));
  for (std::int64_t victim = 1; victim < 15; ++victim) {
    const auto killed = announcing(scratch / ("killed-" + std::to_string(victim)));
    killed.killed_after(victim);
    EXPECT_EQ(read_file(killed.folder / "best.txt"), whole) << victim;
  }
}

TEST(AppendedFile, KeepsFileMissingFromCheckpoint) {
  const Scratch scratch;
  auto before = announcing(scratch / "run");
  before.declared.erase(before.declared.begin() + 1);
  before.adjust = [](TrainPlan& plan) { plan.train.max_steps = 4; };
  before();
  write_file_atomically(scratch / "run" / "best.txt", "written by hand\n");
  announcing(scratch / "run")();
  EXPECT_THAT(read_file(scratch / "run" / "best.txt"),
              ::testing::StartsWith("written by hand\nstep 5: score 5\n"));
}

TEST(AppendedFile, ReplacesProvisionalLines) {
  const Scratch scratch;
  LineDetector model;
  const TrainState state(model, {});
  AppendedFile file;
  file.open(state, scratch / "lines");
  file.append("one\n");
  file.append_provisionally("perhaps\n");
  file.append_provisionally("perhaps not\n");
  EXPECT_EQ(read_file(scratch / "lines"), "one\nperhaps\nperhaps not\n");
  EXPECT_EQ(file.state().at("bytes"), 4);
  file.append("two\n");
  EXPECT_EQ(read_file(scratch / "lines"), "one\ntwo\n");
}

}  // namespace
}  // namespace millrace::testing
