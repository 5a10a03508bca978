// A training run that is killed and resumed writes the same bytes as an uninterrupted one.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>

#include "millrace/trainer/checkpoint/memory_checkpoints.h"
#include "tests/callbacks/training.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

TEST(Resume, MatchesUninterruptedRunAfterKill) {
  const Scratch scratch;
  const Training whole{
      .folder = scratch / "whole",
      .declared = {{"log", "every = '3 steps'"}, {"checkpoint", "every = '1 steps'"}}};
  ASSERT_EQ(whole.in_child(), 0);
  auto killed = whole;
  killed.folder = scratch / "killed";
  std::mt19937 random(1);
  int kills = 0;
  for (bool done = false; !done;) {
    const auto child = killed.start_child();
    ::usleep(std::uniform_int_distribution<useconds_t>(1'000, 60'000 + 20'000 * kills)(random));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    ASSERT_LT(++kills, 200);
  }
  EXPECT_TRUE(deterministic_results(killed.folder) == deterministic_results(whole.folder))
      << "after " << kills << " kills";
}

TEST(Resume, MatchesUninterruptedRunAfterSignal) {
  const Scratch scratch;
  Training{scratch / "whole"}();
  const Training stopped{.folder = scratch / "stopped", .before_step = [](const TrainState& s) {
                           if (s.at.step == 6) std::raise(SIGTERM);
                         }};
  const auto end = stopped();
  EXPECT_TRUE(end.signalled);
  EXPECT_EQ(newest_checkpoint(scratch / "stopped" / "checkpoints")->at.step, 7);
  Training{scratch / "stopped"}();
  EXPECT_TRUE(deterministic_results(scratch / "stopped") ==
              deterministic_results(scratch / "whole"));
}

TEST(Resume, DoesNothingIfRunIsComplete) {
  const Scratch scratch;
  Training{scratch / "run"}();
  const auto before = deterministic_results(scratch / "run");
  EXPECT_EQ(Training{scratch / "run"}().at.step, 15);
  EXPECT_TRUE(deterministic_results(scratch / "run") == before);
}

TEST(Resume, FallsBackFromDamagedCheckpoint) {
  const Scratch scratch;
  Training{scratch / "whole"}();
  Training{scratch / "run"}();
  write_file_atomically(
      fs::canonical(scratch / "run" / "checkpoints" / "latest") / "model.safetensors", "damaged");
  Training{scratch / "run"}();
  EXPECT_TRUE(deterministic_results(scratch / "run") == deterministic_results(scratch / "whole"));
}

std::vector<std::int64_t> saved_steps(const fs::path& run) {
  std::vector<std::int64_t> steps;
  for (const auto& checkpoint : list_checkpoints(run / "checkpoints"))
    steps.push_back(step_of(checkpoint));
  return steps;
}

TEST(Checkpoints, KeepNewestAndPermanentOnes) {
  const Scratch scratch;
  const Declared declared = {{"checkpoint", "every = '1 steps'\nkeep = 2\nkeep_every = '4 steps'"}};
  Training{.folder = scratch / "whole", .declared = declared}();
  EXPECT_THAT(saved_steps(scratch / "whole"), ::testing::ElementsAre(4, 8, 12, 14, 15));
  Training{.folder = scratch / "killed", .declared = declared}.killed_after(10);
  EXPECT_THAT(saved_steps(scratch / "killed"), ::testing::ElementsAre(4, 8, 12, 14, 15));
}

TEST(Checkpoints, AreNotCountedInLimitIfDamaged) {
  const Scratch scratch;
  const Training training{.folder = scratch / "run",
                          .declared = {{"checkpoint", "every = '1 steps'\nkeep = 1"}}};
  training();
  const auto checkpoints = scratch / "run" / "checkpoints";
  fs::create_directory(checkpoints / "step-000100");  // without files
  auto longer = training;
  longer.adjust = [](TrainPlan& plan) { plan.train.epochs = 4; };
  longer();
  EXPECT_THAT(saved_steps(scratch / "run"), ::testing::ElementsAre(20, 100));
  EXPECT_EQ(newest_checkpoint(checkpoints)->at.step, 20);
}

TEST(Ledger, ContainsEachStepOnceAfterKill) {
  const Scratch scratch;
  const Training training{.folder = scratch / "run",
                          .declared = {{"checkpoint", "every = '3 steps'"}, {"ledger", ""}}};
  training();
  const auto whole = read_file(training.folder / "ledger.jsonl");
  const auto lines = json_lines(training.folder / "ledger.jsonl");
  ASSERT_EQ(lines.size(), 15);
  EXPECT_EQ(lines[0].at("step"), 1);
  EXPECT_EQ(lines[0].at("images").size(), 1);
  for (const int step : {1, 4, 6, 11}) {
    fs::remove_all(training.folder);
    training.killed_after(step);
    EXPECT_EQ(read_file(training.folder / "ledger.jsonl"), whole) << step;
  }
}

/// Writes only the initial checkpoint to disk.
const Declared kInMemory = {{"log", "every = '1 step'"},
                            {"checkpoint", "every = '1000 steps'\nat_start = true"},
                            {"average_weights", "decay = 0.9"},
                            {"memory_checkpoint", ""}};

/// After 10 steps, waits until the background thread has written the initial checkpoint to disk,
/// then kills the process.
void killed_after_step_10(const TrainState& state) {
  if (state.at.step != 10) return;
  wait_until([&] { return !saved_steps(state.folder).empty(); });
  ::kill(::getpid(), SIGKILL);
}

TEST(MemoryCheckpoints, LoseAtMostOneStep) {
  const Scratch scratch;
  Training{.folder = scratch / "whole", .declared = kInMemory}();
  Training run{.folder = scratch / "run", .declared = kInMemory};
  run.before_step = killed_after_step_10;
  EXPECT_TRUE(WIFSIGNALED(run.in_child()));
  EXPECT_EQ(newest_checkpoint(run.folder / "checkpoints")->at.step, 0);
  EXPECT_GE(newest_checkpoint_of(run.folder, Cluster::alone())->at.step, 9);
  run.before_step = {};
  EXPECT_EQ(run.in_child(), 0);
  EXPECT_TRUE(deterministic_results(run.folder) == deterministic_results(scratch / "whole"));
  EXPECT_FALSE(fs::exists(run.folder / "memory"));
}

/// Returns the path of the weights in a run's newest checkpoint in this host's memory.
fs::path weights_in_memory(const fs::path& run) {
  const auto folder =
      fs::path("/dev/shm") / ("millrace-" + std::to_string(::getuid())) / read_file(run / "memory");
  return list_checkpoints(folder).back() / "model.safetensors";
}

TEST(MemoryCheckpoints, IgnoreDamagedCheckpointsAndOtherLaunches) {
  const Scratch scratch;
  Training run{.folder = scratch / "run", .declared = kInMemory};
  run.before_step = killed_after_step_10;
  EXPECT_TRUE(WIFSIGNALED(run.in_child()));
  const auto record = read_file(run.folder / "memory");
  write_file_atomically(run.folder / "memory", record.substr(0, record.find('/')) + "/other");
  EXPECT_EQ(newest_checkpoint_of(run.folder, Cluster::alone())->at.step, 0);
  write_file_atomically(run.folder / "memory", record);
  const auto newest = newest_checkpoint_of(run.folder, Cluster::alone())->at.step;
  write_file_atomically(weights_in_memory(run.folder), "damaged");
  EXPECT_LT(newest_checkpoint_of(run.folder, Cluster::alone())->at.step, newest);
  fs::remove_all(weights_in_memory(run.folder).parent_path().parent_path().parent_path());
}

TEST(MemoryCheckpoints, IgnoreRecordsThatPointOutside) {
  const Scratch scratch;
  fs::create_directories(scratch / "foreign" / "start");
  write_checkpoint(scratch / "foreign" / "start", {.at = {.step = 7}});
  const auto outside = fs::relative(scratch / "foreign", "/dev/shm/millrace-0").string();
  for (const auto& record : {outside + "/start", (scratch / "foreign" / "start").string()}) {
    Training run{.folder = scratch / "run", .declared = kInMemory};
    fs::create_directories(run.folder);
    write_file_atomically(run.folder / "memory", record);
    EXPECT_FALSE(newest_checkpoint_of(run.folder, Cluster::alone())) << record;
    run();
    EXPECT_TRUE(fs::exists(scratch / "foreign" / "start" / "step-000007")) << record;
    fs::remove_all(run.folder);
  }
}

TEST(MemoryCheckpoints, IgnoreFoldersOfOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change the owner of a folder";
  constexpr uid_t kUser = 54321;
  const Scratch scratch;
  const auto folder = fs::path("/dev/shm") / ("millrace-" + std::to_string(kUser));
  const auto start = folder / "1" / "2";
  fs::create_directories(start);
  fs::create_directories(scratch / "run" / "checkpoints");
  write_checkpoint(start, {.at = {.step = 7}});
  write_file_atomically(scratch / "run" / "memory", "1/2");
  for (const auto& path : {scratch.path(), scratch / "run", scratch / "run" / "checkpoints"})
    fs::permissions(path, fs::perms::all);
  const auto child = ::fork();
  if (child == 0) {
    if (::setuid(kUser) != 0) ::_exit(2);
    const auto newest = newest_checkpoint_of(scratch / "run", Cluster::alone());
    if (newest) ::_exit(3);
    MemoryCheckpoints kept(scratch / "run", Cluster::alone());
    kept.save({.at = {.step = 8}});
    kept.remove();
    ::_exit(fs::exists(start / "step-000007") && fs::exists(scratch / "run" / "memory") ? 0 : 4);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  fs::remove_all(folder);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// All callbacks that can run on generated data, with options that make each of them act.
const Declared kAll = {
    {"log", "every = '2 steps'"},
    {"checkpoint", "every = '3 steps'\nkeep = 2"},
    {"evaluate", "every = '1 epoch'\nat_start = true"},
    {"keep_best", "metric = 'bbox/AP'"},
    {"figures", "every = '3 steps'"},
    {"progress", ""},
    {"average_weights", "decay = 0.9"},
    {"averaged",
     "type = 'evaluate'\nweights = 'average_weights'\nmode = 'background'\n"
     "every = '4 steps'"},
    {"best_average", "type = 'keep_best'\nmetric = 'average_weights/bbox/AP'"},
    {"validation_loss", "every = '2 steps'\nat_start = true"},
    {"reduce_on_plateau", "metric = 'bbox/AP'\npatience = 0"},
    {"momentum",
     "type = 'set_parameter'\nparameter = 'optimizer.momentum'\nunit = 'steps'\n"
     "at = [2, 9]\nvalues = [0.9, 0.5]\nbetween = 'linear'"},
    {"live_edit", "interval = '0 seconds'"},
    {"stop_early", "metric = 'val/loss'\nbetter = 'lower'\npatience = 4"},
    {"run_command", "command = 'true'\nonly_if = 'val/loss > 0'"},
};

/// Returns a training run with all of these callbacks; an edit of edit.toml lowers the weight decay
/// after step 8.
Training everything(const fs::path& folder, const Declared& declared = kAll) {
  return {.folder = folder, .declared = declared, .before_step = [=](const TrainState& s) {
            if (s.at.step >= 6)
              write_file_atomically(folder / "edit.toml", "optimizer.weight_decay = 0.0");
          }};
}

/// Returns the results of a run: weights, momentum, metrics, averages, detections and the best
/// checkpoints.
std::string all_essence(const fs::path& run) {
  auto text = deterministic_results(run);
  for (const auto* file :
       {"checkpoints/latest/callback.average_weights.safetensors",
        "checkpoints/best/model.safetensors", "checkpoints/best_average/model.safetensors",
        "detections/step-000010.json", "detections/average_weights/step-000008.json"})
    text += read_file(run / file);
  return text;
}

TEST(Resume, MatchesUninterruptedRunWithAllCallbacks) {
  const Scratch scratch;
  ASSERT_EQ(everything(scratch / "whole").in_child(), 0);
  const auto whole = all_essence(scratch / "whole");
  for (std::int64_t victim = 0; victim < 15; ++victim) {
    const auto folder = scratch / ("killed-" + std::to_string(victim));
    auto killed = everything(folder);
    killed.before_step = [&, edit = killed.before_step](const TrainState& s) {
      if (s.at.step == victim) ::kill(::getpid(), SIGKILL);
      edit(s);
    };
    ASSERT_TRUE(WIFSIGNALED(killed.in_child()));
    // An edit that no run has applied yet is removed, since the resumed run would apply it too
    // early.
    if (!fs::exists(folder / "edits.jsonl")) fs::remove(folder / "edit.toml");
    ASSERT_EQ(everything(folder).in_child(), 0);
    EXPECT_TRUE(all_essence(folder) == whole) << "killed after step " << victim;
  }
}

TEST(Callbacks, ProduceSameResultsInAnyOrder) {
  const Scratch scratch;
  auto order = kAll;
  std::string first;
  std::mt19937 random(1);
  for (int i = 0; i < 8; ++i, std::shuffle(order.begin(), order.end(), random)) {
    const auto folder = scratch / std::to_string(i);
    everything(folder, order)();
    if (i == 0) first = all_essence(folder);
    EXPECT_TRUE(all_essence(folder) == first) << i;
  }
}

}  // namespace
}  // namespace millrace::testing
