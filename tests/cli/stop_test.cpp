// After a signal at any time, even before the process starts or when its terminal closes, trained
// steps are saved and the exit code is 3.
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>

#include "millrace/base/files.h"
#include "tests/cli/trainer.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

/// Creates a file that no other process can open while this process holds its lease.
UniqueFd leased(const fs::path& file) {
  UniqueFd held(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  std::signal(SIGIO, SIG_IGN);  // the signal asks to release the lease
  EXPECT_EQ(::fcntl(held.get(), F_SETLEASE, F_WRLCK), 0) << strerror(errno);
  return held;
}

class Stop : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path runs_ = in_folder("runs");
  fs::path folder_ = runs_ / "maskrcnn-1";

  Words command(const Words& overrides = {}) const {
    return on(data_, {"run", "--out", runs_},
              Words{"data.short_side=64", "data.max_side=96", "train.max_steps=100000",
                    "train.epochs=100000", "callbacks.log.every='1 steps'",
                    "callbacks.checkpoint.every='100000 steps'"} +
                  kTrainOnly + overrides);
  }

  /// Runs until `reached` returns true, then sends one signal.
  Outcome stopped(const Words& arguments, int signal, const std::function<bool()>& reached,
                  const fs::path& program = MILLRACE_TRAINER) const {
    const auto child = start(program, arguments);
    wait_until([&] { return reached() || waitpid(child, nullptr, WNOHANG) != 0; });
    ::kill(child, signal);
    return finish(child);
  }

  /// Replaces each image of a split with a pipe. Pipes are renamed into place, so that no file is
  /// ever missing.
  void make_pipes(const std::string& split) const {
    std::vector<fs::path> images;
    for (const auto& image : fs::directory_iterator(data_ / split)) images.push_back(image);
    const auto pipe = in_folder("pipe");
    for (const auto& image : images) {
      ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
      fs::rename(pipe, image);
    }
  }

  /// Returns true if one of the pipes is being read. The pipe stays open, so the reader waits
  /// forever.
  bool is_pipe_read(const std::string& split) const {
    return std::ranges::any_of(fs::directory_iterator(data_ / split), [](const auto& image) {
      return ::open(image.path().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0;
    });
  }

  /// Waits until one step is done and the next step waits for images that never arrive.
  bool wait_for_hang() const {
    const bool stepped = wait_until([&] { return lines() >= 1; });
    make_pipes("train2017");
    return stepped && wait_until([&] { return is_pipe_read("train2017"); });
  }

  void expect_saved(const Outcome& end, const std::string& what = "") const {
    EXPECT_EQ(end.exit_code, 3) << what << end.err;
    EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "latest" / "state.json")) << what;
  }

  /// Returns the step at which the run ended.
  int ended_at() const {
    return read_json(folder_ / "record.json").at("starts").back().at("ended").at("step");
  }

  std::size_t lines() const {
    const auto text = read_text(folder_ / "metrics.jsonl");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
};

TEST_F(Stop, SavesLastStepOnSignal) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const auto end = stopped(command(), signal, [&] { return lines() >= 3; });
    EXPECT_EQ(end.exit_code, 3) << end.err;
    EXPECT_THAT(end.err, HasSubstr("SIG" + std::string(::sigabbrev_np(signal))));
    const auto state = read_json(folder_ / "checkpoints" / "latest" / "state.json").at("state");
    EXPECT_EQ(state.at("step"), lines());
    fs::remove_all(runs_);
  }
}

TEST_F(Stop, SavesStepDuringEvaluationOrPictures) {
  const auto val = in_folder("large");
  successful(trainer({"sample", "--out", val, "--train", "8", "--val", "200"}));
  const std::string root = setting("data.root", val);
  for (const std::string mode : {"inline", "score_in_background", "background"}) {
    const auto end =
        stopped(command({root, "callbacks.evaluate.enabled=true", "callbacks.evaluate.mode=" + mode,
                         "callbacks.evaluate.every=\"2 steps\""}),
                SIGTERM, [&] { return lines() >= 1; });
    expect_saved(end, mode);
    fs::remove_all(runs_);
  }
  const auto end =
      stopped(command({root, "callbacks.pictures.enabled=true", "callbacks.pictures.count=200",
                       "callbacks.pictures.every=\"1 steps\""}),
              SIGTERM, [&] { return fs::exists(folder_ / "pictures" / "step-000001"); });
  expect_saved(end);
}

TEST_F(Stop, SavesStepWhileWaitingForData) {
  const auto end = stopped(command(), SIGTERM, [&] { return wait_for_hang(); });
  expect_saved(end);
  EXPECT_THAT(end.err, ContainsRegex("trainer: SIGTERM: .*[0-9.]+ s "));
}

TEST_F(Stop, SavesStepWhileWaitingForValidation) {
  make_pipes("val2017");
  for (const std::string callback :
       {"validation_loss", "evaluate", "evaluate.mode=\"background\"", "pictures"}) {
    const auto name = callback.substr(0, callback.find('.'));
    Words overrides = {"callbacks." + name + ".every=\"1 steps\"",
                       "callbacks." + name + ".enabled=true"};
    if (name != callback) overrides.push_back("callbacks." + callback);
    const auto end = stopped(command(overrides), SIGTERM, [&] { return is_pipe_read("val2017"); });
    expect_saved(end, callback);
    EXPECT_THAT(end.err, HasSubstr("trainer: SIGTERM: ")) << callback;
    fs::remove_all(runs_);
  }
}

TEST_F(Stop, StopsWhileLoadingOrMakingSample) {
  const auto weights = in_folder("weights.pth");
  const auto held = leased(weights);
  const auto loading = stopped(command({setting("model.weights", weights)}), SIGTERM, [&] {
    return ::fcntl(held.get(), F_GETLEASE) != F_WRLCK;  // an open of the file waits
  });
  EXPECT_EQ(loading.exit_code, 3) << loading.err;
  EXPECT_THAT(loading.err, HasSubstr("trainer: SIGTERM: "));
  EXPECT_FALSE(fs::exists(runs_));

  const auto sample = in_folder("sample"), own = in_folder("own.toml");
  write_heir(own,
             "[data]\nroot = '" + sample.string() + "'\n[data.sample]\nseed = 1\ntrain = 5000\n");
  auto making = command();
  const auto config = std::ranges::find(making, "configs/maskrcnn.toml");
  *config = own.string();
  making.erase(config + 1, config + 3);  // removes --set data.root=...
  const auto end = stopped(making, SIGTERM, [&] { return fs::exists(sample.string() + ".part"); });
  EXPECT_EQ(end.exit_code, 3) << end.err;
  EXPECT_FALSE(fs::exists(sample));
  successful(trainer(
      with_settings(making, {"data.sample.train=8", "data.sample.val=4", "train.max_steps=1"})));
}

TEST_F(Stop, HandlesSignalSentBeforeStart) {
  const auto with_signal_waiting = [&](const Words& arguments) {
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &term, &before);  // inherited by the child
    const auto child = start(MILLRACE_TRAINER, arguments);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::kill(child, SIGTERM);
    return finish(child);
  };
  const auto run = with_signal_waiting(command());
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_THAT(run.err, StartsWith("trainer: SIGTERM: "));
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 1);
  EXPECT_FALSE(fs::exists(runs_));
  const auto serve = successful(with_signal_waiting(on(data_, {"serve"})));
  EXPECT_THAT(serve.err, StartsWith("trainer: SIGTERM: "));
  EXPECT_EQ(std::ranges::count(serve.err, '\n'), 1);
  EXPECT_EQ(with_signal_waiting({"list"}).exit_code, -1) << "killed, as by default";
}

TEST_F(Stop, HandlesSignalWhileSecondProgramLoads) {
  for (const std::string subcommand : {"run", "serve"}) {
    const auto child =
        start(MILLRACE_TRAINER, subcommand == "run" ? command() : on(data_, {"serve"}));
    const auto program = fs::path("/proc") / std::to_string(child) / "exe";
    std::error_code ended;
    while (fs::read_symlink(program, ended).filename() != "trainer-torch" && !ended) {
    }
    ::kill(child, SIGTERM);
    const auto end = finish(child);
    EXPECT_EQ(end.exit_code, subcommand == "run" ? 3 : 0) << end.err;
    EXPECT_THAT(end.err, HasSubstr("trainer: SIGTERM: "));
  }
}

TEST_F(Stop, SavesWhenTerminalCloses) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_TRUE(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
  const std::string name = ::ptsname(terminal);
  const auto line = "exec " MILLRACE_TRAINER + quoted(command());
  const auto child = ::fork();
  if (child == 0) {
    ::setsid();
    // This becomes the controlling terminal of the session.
    const int side = ::open(name.c_str(), O_RDWR);
    for (int stream = 0; stream < 3; ++stream) ::dup2(side, stream);
    ::close(side);
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  std::string seen(4096, ' ');
  while (lines() < 3) {
    int waiting = 0;
    ::ioctl(terminal, FIONREAD, &waiting);
    if (waiting > 0) {
      ASSERT_GT(::read(terminal, seen.data(), seen.size()), 0);
    } else {
      ::usleep(5'000);
    }
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_THAT(read_text(folder_ / "log.txt"), HasSubstr("SIGHUP"));
  const auto state = read_json(folder_ / "checkpoints" / "latest" / "state.json").at("state");
  EXPECT_EQ(state.at("step"), lines());
}

TEST_F(Stop, IgnoresClosedTerminalUnderNohup) {
  const auto line = "trap '' HUP; exec " MILLRACE_TRAINER + quoted(command({"train.max_steps=6"}));
  const auto end = stopped(
      {"-c", line}, SIGHUP, [&] { return lines() >= 2; }, "/bin/bash");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(ended_at(), 6);
}

TEST_F(Stop, TrainsIfOutputIsNotRead) {
  const auto line = MILLRACE_TRAINER + quoted(command({"train.max_steps=4"}));
  const auto end = run("/bin/bash", {"-c", line + " 2>&1 | head -n 1; exit ${PIPESTATUS[0]}"});
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(std::ranges::count(end.out, '\n'), 1);
  EXPECT_EQ(ended_at(), 4);
}

TEST_F(Stop, ReportsFileSizeLimit) {
  const auto out = in_folder("out");
  const auto limited = [&](const Words& arguments) {
    return run("/bin/bash", {"-c", "ulimit -f 10; exec " MILLRACE_TRAINER + quoted(arguments)});
  };
  for (const auto& arguments :
       std::vector<Words>{on(data_, {"pack", "--out", out}),
                          {"sample", "--out", out, "--train", "4", "--val", "2"}}) {
    expect_error(limited(arguments), 1, out.string());
    EXPECT_FALSE(fs::exists(out));
    EXPECT_FALSE(fs::exists(out.string() + ".part"));
  }
}

TEST_F(Stop, DiesOnSecondSignal) {
  const auto child = start(MILLRACE_TRAINER, command());
  ASSERT_TRUE(wait_for_hang());
  siginfo_t end{};
  ASSERT_TRUE(wait_until([&] {  // two signals at the same time may be merged into one
    ::kill(child, SIGTERM);
    return ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           end.si_pid == child;
  }));
  EXPECT_EQ(finish(child).exit_code, -1);
}

}  // namespace
}  // namespace millrace::testing
