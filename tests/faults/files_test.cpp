// If any single call on a file of a run fails, or the process is killed at that call, the resumed
// run ends with the files of an undisturbed run. MILLRACE_FAILING_FILES_SECONDS limits the time
// spent on a random sample of the calls; 0 = all calls. MILLRACE_FAILING_FILES_SEED selects a
// different sample.
#include <fcntl.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "millrace/base/clock.h"
#include "millrace/base/disk/part_folder.h"
#include "millrace/base/disk/shared_blocks.h"
#include "millrace/base/log.h"
#include "millrace/trainer/appended_file.h"
#include "tests/callbacks/training.h"
#include "tests/faults/failing_files.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr unsigned kHangs = 120;  // seconds; longer than any run takes

/// All callbacks that can run on generated data, each with output within four steps.
const Declared kWriters = {
    {"log", "every = '1 steps'"},
    {"csv", "every = '2 steps'"},
    {"tensorboard", "every = '2 steps'"},
    {"ledger", ""},
    {"checkpoint", "every = '1 steps'\nkeep = 2\nat_start = true"},
    {"evaluate", "every = '2 steps'\nat_start = true"},
    {"keep_best", "metric = 'bbox/AP'"},
    {"figures", "every = '2 steps'"},
    {"progress", ""},
    {"average_weights", "decay = 0.9"},
    {"averaged",
     "type = 'evaluate'\nweights = 'average_weights'\nmode = 'background'\nevery = '1 steps'"},
    {"best_average", "type = 'keep_best'\nmetric = 'average_weights/bbox/AP'"},
    {"validation_loss", "every = '1 steps'"},
    {"lowest_loss", "type = 'keep_best'\nmetric = 'val/loss'\nbetter = 'lower'"},
    {"reduce_on_plateau", "metric = 'bbox/AP'\npatience = 0"},
    {"momentum",
     "type = 'set_parameter'\nparameter = 'optimizer.momentum'\nunit = 'steps'\n"
     "at = [1, 3]\nvalues = [0.9, 0.5]\nbetween = 'linear'"},
    {"live_edit", "interval = '0 seconds'"},
    {"stop_early", "metric = 'val/loss'\nbetter = 'lower'\npatience = 9"},
    {"profile", "from_step = 2\nsteps = 1"},
};

constexpr auto kEdit = R"({"after_step":2,"name":"optimizer.weight_decay","from":0.1,"to":0.0})";

/// A run of four steps whose settings are edited after the second step.
struct ShortRun {
  fs::path folder, log;
  Declared declared = kWriters;

  void prepare() const {
    fs::create_directories(folder);
    write_file_atomically(folder / "edits.jsonl", std::string(kEdit) + "\n");
  }

  /// Trains from the newest checkpoint, in a child process in which a call on the run's files
  /// fails. Returns the child's wait status.
  int operator()(FileFault fault = FileFault::none, std::int64_t at = 0) const {
    return with_failing(folder, fault, at);
  }

  /// Trains as above, with a failing call on the files below `where`.
  int with_failing(const fs::path& where, FileFault fault, std::int64_t at) const {
    forget_calls();
    const auto child = ::fork();
    if (child == 0) {
      ::alarm(kHangs);
      const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      for (const int stream : {1, 2}) ::dup2(out, stream);
      fail_call(where, fault, at);
      int code = 0;
      try {
        const Training training{.folder = folder, .declared = declared, .adjust = [](TrainPlan& p) {
                                  p.train.max_steps = 4;
                                }};
        training();
      } catch (const std::exception& problem) {
        log_error("{}", problem.what());
        code = 1;
      }
      fail_call(where, FileFault::none, 0);
      ::_exit(code);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
};

std::string rows_without_times(const fs::path& csv) {
  std::istringstream lines(read_file(csv));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (line.find(",time/") == std::string::npos) text += line + "\n";
  return text;
}

/// Returns a state file without the values that depend on time: file lengths and durations.
std::string state_without_times(const fs::path& file) {
  auto state = json::parse(read_file(file)).at("state");
  state.erase("callbacks");
  auto& latest = state.at("latest");
  for (auto one = latest.begin(); one != latest.end();)
    one = one.key().starts_with("time/") ? latest.erase(one) : std::next(one);
  return state.dump();
}

/// Returns the contents of those files of a run that are equal in every run, by name.
std::map<std::string, std::string> promised(const fs::path& run) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    const auto name = fs::relative(entry.path(), run).string();
    const auto file = entry.path().filename();
    if (name.starts_with("tensorboard") || name.starts_with("traces")) continue;
    if (entry.is_symlink())
      all[name] = "-> " + fs::read_symlink(entry.path()).string();
    else if (entry.is_directory())
      all[name] = "folder";
    else if (file == "metrics.jsonl")
      all[name] = metrics_without_times(entry.path());
    else if (file == "metrics.csv")
      all[name] = rows_without_times(entry.path());
    else if (file == "state.json")
      all[name] = state_without_times(entry.path());
    else
      all[name] = read_file(entry.path());
  }
  return all;
}

/// Returns how the files of a run differ from those of an undisturbed run; empty = equal. Partial
/// files and a checkpoint that could not be removed are allowed.
std::string difference(const std::map<std::string, std::string>& whole,
                       const std::map<std::string, std::string>& run) {
  std::string text;
  for (const auto& [name, bytes] : whole)
    if (const auto found = run.find(name); found == run.end())
      text += name + " is missing; ";
    else if (found->second != bytes)
      text += name + " differs; ";
  for (const auto& [name, bytes] : run)
    if (!whole.contains(name) && !name.starts_with("checkpoints/step-") &&
        name.find(".part") == std::string::npos)
      text += name + " is left over; ";
  return text;
}

struct Case {
  FileFault fault;
  std::int64_t at;
};

/// Returns every combination of a call and a fault with which it can fail.
std::vector<Case> all_cases(const Scratch& scratch) {
  std::vector<Case> cases;
  for (const auto fault : {FileFault::eio, FileFault::enospc, FileFault::eintr, FileFault::emfile,
                           FileFault::estale, FileFault::half_write, FileFault::kill}) {
    const ShortRun run{scratch / "counted", scratch / "log"};
    run.prepare();
    EXPECT_EQ(run(fault, 0), 0) << read_file(run.log);
    for (std::int64_t at = 1; at <= calls_made(); ++at) cases.push_back({fault, at});
    fs::remove_all(run.folder);
  }
  return cases;
}

/// Runs a case and resumes the run. Returns a description of the failure; empty = none.
std::string try_out(const Case& one, const ShortRun& run,
                    const std::map<std::string, std::string>& whole) {
  run.prepare();
  const auto status = run(one.fault, one.at);
  const auto call = failed_call();
  const auto what = fmt::format("call {} ({}: {}): ", one.at, name_of(one.fault), call);
  if (call.empty()) return "";  // threads ran in a different order, with fewer calls
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (!WIFEXITED(status) && !(killed && one.fault == FileFault::kill))
    return what + fmt::format("wait status {}", status);
  if (one.fault == FileFault::eintr && status != 0) return what + "not repeated";
  if (run() != 0) return what + "does not resume";
  const auto differs = difference(whole, promised(run.folder));
  return differs.empty() ? "" : what + differs;
}

std::int64_t number_in(const char* variable, std::int64_t otherwise) {
  const auto* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

TEST(FailingFiles, AreRetriedIfInterrupted) {
  const Scratch scratch;
  const auto touch = [&] {
    write_file_atomically(scratch / "whole", "1");
    const std::string_view part = "2";
    replace_file(scratch / "replaced", {&part, 1});
    append_to(scratch / "lines", "3\n");
    cut_file(scratch / "lines", 0);
    sync_path(scratch / "whole");
    PartFolder folder(scratch / "folder", PartFolder::Existing::replace);
    write_sharing(folder.path() / "file", {&part, 1}, scratch / "whole");
    folder.publish();
    return read_file(scratch / "whole") + read_file(scratch / "replaced") +
           read_file(scratch / "folder/file");
  };
  touch();
  forget_calls();
  fail_call(scratch.path(), FileFault::eintr, 0);
  touch();
  const auto calls = calls_made();
  EXPECT_GE(calls, 20);
  for (std::int64_t at = 1; at <= calls; ++at) {
    forget_calls();
    fail_call(scratch.path(), FileFault::eintr, at);
    std::string problem, read;
    try {
      read = touch();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    EXPECT_EQ(read, "122") << at << " " << failed_call() << ": " << problem;
  }
  fail_call(scratch.path(), FileFault::none, 0);
}

TEST(FailingFiles, LeaveNoPartialLine) {
  const Scratch scratch;
  append_to(scratch / "lines", "one\n");
  fail_call(scratch.path(), FileFault::half_write, 1);
  forget_calls();
  EXPECT_THROW(append_to(scratch / "lines", "two and three\n"), Error);
  fail_call(scratch.path(), FileFault::none, 0);
  EXPECT_EQ(read_file(scratch / "lines"), "one\n");
}

TEST(FailingFiles, DoNotStopTrainingInSharedMemory) {
  const Scratch scratch;
  const Declared kept = {
      {"log", "every = '1 steps'"}, {"checkpoint", "every = '1 steps'"}, {"memory_checkpoint", ""}};
  const auto shared = fs::path("/dev/shm") / fmt::format("millrace-{}", ::geteuid());
  const ShortRun whole{scratch / "whole", scratch / "log", kept};
  whole.prepare();
  ASSERT_EQ(whole(), 0) << read_file(whole.log);
  for (const auto fault : {FileFault::enospc, FileFault::half_write, FileFault::emfile})
    for (const std::int64_t at : {1, 2, 3, 5, 8, 13}) {
      const ShortRun run{scratch / "run", scratch / "log-of-one", kept};
      run.prepare();
      EXPECT_EQ(run.with_failing(shared, fault, at), 0) << read_file(run.log);
      EXPECT_NE(failed_call(), "") << name_of(fault) << " " << at;
      EXPECT_TRUE(deterministic_results(run.folder) == deterministic_results(whole.folder))
          << failed_call();
      fs::remove_all(run.folder);
      fs::remove(run.log);
    }
}

TEST(FailingFiles, AreSameAfterResume) {
  const Scratch scratch;
  const ShortRun undisturbed{scratch / "whole", scratch / "log"};
  undisturbed.prepare();
  ASSERT_EQ(undisturbed(), 0) << read_file(undisturbed.log);
  const auto whole = promised(undisturbed.folder);
  ASSERT_TRUE(whole.contains("checkpoints/step-000004/model.safetensors"));

  auto cases = all_cases(scratch);
  std::mt19937 random(static_cast<unsigned>(number_in("MILLRACE_FAILING_FILES_SEED", 1)));
  std::ranges::shuffle(cases, random);
  const auto seconds = static_cast<double>(number_in("MILLRACE_FAILING_FILES_SECONDS", 25));
  const auto began = Clock::now();
  std::size_t tried = 0, wrong = 0;
  for (const auto& one : cases) {
    if (seconds > 0 && seconds_since(began) > seconds) break;
    const ShortRun run{scratch / "run", scratch / "log-of-one"};
    const auto problem = try_out(one, run, whole);
    EXPECT_EQ(problem, "") << read_file(run.log);
    wrong += problem.empty() ? 0 : 1;
    fs::remove_all(run.folder);
    fs::remove(run.log);
    ++tried;
  }
  std::printf("%zu of %zu failing calls tried, %zu wrong\n", tried, cases.size(), wrong);
  EXPECT_GT(tried, 20);
}

}  // namespace
}  // namespace millrace::testing
